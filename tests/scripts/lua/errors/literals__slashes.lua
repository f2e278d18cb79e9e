-- error: syntax
-- line: 6
-- message: unexpected symbol near '//'
-- hint: comments begin with -- in Lua, not with //

// add the numbers
return 1 + 2
