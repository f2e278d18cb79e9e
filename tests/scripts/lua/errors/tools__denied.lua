-- error: denied
-- line: 8
-- message: not for you
-- hint: do not repeat this call: continue without it, or ask for permission
-- calls: fail

local x = 1
return tools.fail{code = "denied", message = "not for you"}
