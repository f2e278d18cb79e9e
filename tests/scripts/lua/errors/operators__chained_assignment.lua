-- error: syntax
-- line: 7
-- message: unexpected symbol near '='
-- hint: an assignment is not an expression in Lua: assign the variables one after the other

local a, b
a = b = 5
return a
