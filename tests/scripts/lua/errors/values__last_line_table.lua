-- error: syntax
-- line: 7
-- message: unexpected symbol near '{'
-- hint: the last line is an expression; write: return {x, x}

local x = 5
{x, x}
