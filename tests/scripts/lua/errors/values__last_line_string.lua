-- error: syntax
-- line: 7
-- message: unexpected symbol near '"total: "'
-- hint: the last line is an expression; write: return "total: " .. x

local x = 5
"total: " .. x
