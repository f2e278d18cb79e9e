-- value: true
-- value: false
-- value: true
-- value: true
return 1 < 2, "a" > "b", 1 == 1.0, "1" ~= 1
