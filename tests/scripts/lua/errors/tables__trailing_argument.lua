-- error: syntax
-- line: 6
-- message: unexpected symbol near ')'
-- hint: no comma may follow the last argument: remove it

return math.max(1, 2,)
