-- error: syntax
-- line: 6
-- message: unexpected symbol near '/'
-- hint: comments begin with -- in Lua, or are written --[[ … ]]

/* add */
return 1
