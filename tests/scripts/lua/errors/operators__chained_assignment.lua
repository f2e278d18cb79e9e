-- error: syntax
-- line: 7
-- message: unexpected symbol near '='
-- hint: an assignment is not a value in Lua: assign one variable after the other

local a, b
a = b = 5
return a
