-- value: 2
-- value: 1
local a, b = 1, 2
a, b = b, a
return a, b
