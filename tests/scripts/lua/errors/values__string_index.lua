-- error: syntax
-- line: 6
-- message: <eof> expected near '['
-- hint: strings are not indexed with [ ]; one character is: ("abc"):sub(1, 1)

return "abc"[1]
