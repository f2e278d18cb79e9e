-- value: 3
-- value: -4
-- value: 3.0
return 7 // 2, -7 // 2, 7 // 2.0
