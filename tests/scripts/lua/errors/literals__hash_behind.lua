-- error: syntax
-- line: 6
-- message: unexpected symbol near '#'
-- hint: comments begin with -- in Lua, not with #

local x = 1 # first
return x
