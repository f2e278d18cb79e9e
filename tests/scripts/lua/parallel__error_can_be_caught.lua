-- value: false
-- value: "it failed"
-- calls: fail
local ok, e = pcall(parallel, { function() tools.fail() end })
return ok, e.message
