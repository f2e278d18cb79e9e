-- attack: spend operations by calls alone
-- limits: {"max_operations": 10000, "timeout": 5}
-- error: limit operations
local function f() return f() end
f()
