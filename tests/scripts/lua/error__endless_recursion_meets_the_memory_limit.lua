-- limits: {"max_memory": 16000000}
-- error: limit memory
local function f() return 1 + f() end
f()
-- next run
-- value: 1
return 1
