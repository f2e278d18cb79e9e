-- error: syntax
-- line: 6
-- message: unexpected symbol near '/'
-- hint: comments begin with -- in Lua, or stand between --[[ and ]]

/* add */
return 1
