-- error: syntax
-- line: 6
-- message: <eof> expected near '.'
-- hint: a string that a method is called on stands in parentheses; write: ("abc"):upper(…)

return "abc".upper()
