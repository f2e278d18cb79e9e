-- attack: overflow the C stack with sort in sort
-- value: false
local function f() table.sort({ 1, 2, 3 }, f) return true end
return (pcall(f))
