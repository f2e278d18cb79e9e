-- error: syntax
-- line: 6
-- message: syntax error near 'one'
-- hint: comments begin with -- in Lua, not with //

local x = 1 // the first one
return x
