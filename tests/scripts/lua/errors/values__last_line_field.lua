-- error: syntax
-- line: 7
-- message: syntax error near <eof>
-- hint: the last line is an expression; write: return t.a

local t = {a = 1}
t.a
