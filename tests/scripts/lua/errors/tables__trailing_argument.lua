-- error: syntax
-- line: 6
-- message: unexpected symbol near ')'
-- hint: the last argument is not followed by a comma: remove it

return math.max(1, 2,)
