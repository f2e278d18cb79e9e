-- error: syntax
-- line: 7
-- message: unexpected symbol near '>'
-- hint: not equal is ~= in Lua, not <>; write: return a ~= 2

local a = 1
return a <> 2
