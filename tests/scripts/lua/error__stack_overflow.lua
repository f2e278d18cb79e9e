-- limits: {"max_memory": 500000000}
-- error: runtime
-- message has: stack overflow
local function f() return 1 + f() end
f()
-- next run
-- value: 1
return 1
