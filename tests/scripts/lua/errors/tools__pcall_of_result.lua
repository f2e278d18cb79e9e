-- error: tool
-- line: 7
-- message: at once
-- hint: pcall must make the call itself: here the tool is called before it; write: pcall(tools.fail, {…})
-- calls: fail

local ok, problem = pcall(tools.fail{message = "at once"})
return ok
