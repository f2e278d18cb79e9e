-- error: syntax
-- line: 7
-- message: unexpected symbol near '|'
-- hint: Lua writes 'or' for ||; write: return a or b

local a, b = true, false
return a || b
