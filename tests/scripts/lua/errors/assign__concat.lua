-- error: syntax
-- line: 7
-- message: syntax error near '..'
-- hint: Lua has no ..=; write: text = text .. "b"

local text = "a"
text ..= "b"
return text
