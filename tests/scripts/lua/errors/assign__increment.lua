-- error: syntax
-- line: 7
-- message: syntax error near '+'
-- hint: Lua has no ++; write: i = i + 1

local i = 0
i++
return i
