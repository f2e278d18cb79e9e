-- error: syntax
-- line: 7
-- message: syntax error near '+'
-- hint: an expression alone does nothing; use its value, such as: local result = x + 1

local x = 5
x + 1
return x
