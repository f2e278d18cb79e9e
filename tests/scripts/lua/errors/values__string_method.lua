-- error: syntax
-- line: 6
-- message: <eof> expected near '.'
-- hint: to call a method on a string, put it in parentheses; write: ("abc"):upper(…)

return "abc".upper()
