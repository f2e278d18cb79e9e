-- error: syntax
-- line: 7
-- message: syntax error near '+'
-- hint: an expression is not a statement; use its value, for example: local result = x + 1

local x = 5
x + 1
return x
