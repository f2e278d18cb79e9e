-- value: "failed: fail: it failed"
-- calls: fail
local _, e = pcall(tools.fail)
return "failed: " .. e
