-- attack: overflow the C stack with pcall in pcall
-- value: true
local depth = 0
local function f() depth = depth + 1 return pcall(f) end
f()
return depth > 50
