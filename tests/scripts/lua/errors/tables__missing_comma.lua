-- error: syntax
-- line: 8
-- message: '}' expected (to close '{' at line 6) near 'b'
-- hint: table fields are separated by commas: one is missing at the end of line 7

local t = {
  a = 1
  b = 2
}
return t
