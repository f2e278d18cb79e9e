-- value: false
local ok = xpcall(error, function() error("again") end, "x")
return ok
