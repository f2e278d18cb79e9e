-- attack: fail at the bottom of a deep recursion with long names
-- error: runtime
-- message has: deep
local function f(n) if n == 0 then error("deep") end return 1 + f(n - 1) end
f(50000)
