-- attack: recurse without end
-- limits: {"max_memory": 8000000}
-- error: limit memory
local function f() local a, b, c, d = 1, 2, 3, 4 return f() + 1 end
return (pcall(f))
