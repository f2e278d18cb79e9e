-- attack: nest parallel in parallel without end
-- value: false
-- limits: {"max_memory": 32000000}
local function f() return parallel{ f, f } end
return (pcall(f))
