-- value: 8
-- value: 14
-- value: 6
-- value: -1
-- value: 16
-- value: 1
return 12 & 10, 12 | 10, 12 ~ 10, ~0, 1 << 4, 16 >> 4
