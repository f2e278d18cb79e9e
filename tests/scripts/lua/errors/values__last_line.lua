-- error: syntax
-- line: 7
-- message: syntax error near '*'
-- hint: the last line is an expression; write: return x * 2

local x = 5
x * 2
