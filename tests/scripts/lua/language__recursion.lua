-- value: 120
local function fact(n) return n <= 1 and 1 or n * fact(n - 1) end
return fact(5)
