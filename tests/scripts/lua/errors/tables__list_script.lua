-- error: syntax
-- line: 6
-- message: unexpected symbol near '['
-- hint: a list is written in braces; write: return {1, 2, 3}

[1, 2, 3]
