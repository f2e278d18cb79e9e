-- value: 1
-- value: 2
-- value: -2
return 7 % 3, -7 % 3, 7 % -3 == -2 and -2
