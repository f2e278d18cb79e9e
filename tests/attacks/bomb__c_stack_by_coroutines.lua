-- attack: overflow the C stack with coroutines in coroutines
-- features: coroutines
-- value: true
local depth = 0
local function f() depth = depth + 1 return coroutine.wrap(f)() end
local ok = pcall(f)
return not ok and depth > 50
