-- error: syntax
-- line: 6
-- message: <eof> expected near '['
-- hint: strings cannot be indexed with [ ]; get one character with: ("abc"):sub(1, 1)

return "abc"[1]
