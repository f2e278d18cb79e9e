-- error: syntax
-- line: 7
-- message: syntax error near <eof>
-- hint: the last line is an expression; write: return x

local x = 5
x
