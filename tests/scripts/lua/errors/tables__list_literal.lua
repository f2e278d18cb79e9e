-- error: syntax
-- line: 6
-- message: unexpected symbol near '['
-- hint: a list is written in braces; write: {1, 2, 3}

local list = [1, 2, 3]
return list
