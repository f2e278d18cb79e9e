-- error: syntax
-- line: 6
-- message: unexpected symbol near ':'
-- hint: Lua has no type annotations; write: local x = 5

local x: number = 5
return x
