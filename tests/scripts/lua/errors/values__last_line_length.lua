-- error: syntax
-- line: 7
-- message: unexpected symbol near '#'
-- hint: the last line is an expression; write: return #list

local list = {1, 2}
#list
