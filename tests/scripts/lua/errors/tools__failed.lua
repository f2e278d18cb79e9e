-- error: tool
-- line: 7
-- message: no such order
-- calls: fail

local x = 1
local y = tools.fail{message = "no such order", code = "not_found"}
return y
