-- error: syntax
-- line: 9
-- message: '}' expected (to close '{' at line 8) near <eof>
-- hint: the { of line 8 is never closed: add }

local t = {
  a = 1,
  b = {2, 3
