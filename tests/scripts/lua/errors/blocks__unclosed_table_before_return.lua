-- error: syntax
-- line: 7
-- message: '}' expected (to close '{' at line 6) near 'return'
-- hint: the { of line 6 is not closed before this line: add }

local t = {1, 2, 3
return t
