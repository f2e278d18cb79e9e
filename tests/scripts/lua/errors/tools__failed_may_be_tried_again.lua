-- error: tool
-- line: 8
-- message: it failed
-- hint: a retry may succeed; to continue without it write: local ok, result = pcall(tools.fail, {…})
-- calls: fail

local x = 1
local y = tools.fail{retryable = true}
return y
