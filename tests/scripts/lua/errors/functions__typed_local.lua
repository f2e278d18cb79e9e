-- error: syntax
-- line: 6
-- message: unexpected symbol near ':'
-- hint: Lua has no type annotations: remove the colon and the type

local x: number = 5
return x
