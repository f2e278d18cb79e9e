-- value: 5
-- value: 6
a, b = 5, 6
return a, b
