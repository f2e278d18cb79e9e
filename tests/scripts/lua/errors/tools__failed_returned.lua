-- error: tool
-- line: 7
-- message: it failed
-- calls: fail

local x = 1
return tools.fail{}
