-- error: syntax
-- line: 7
-- message: unexpected symbol near '='
-- hint: Lua compares with ==, there is no ===; write: return a == b

local a, b = 1, 2
return a === b
