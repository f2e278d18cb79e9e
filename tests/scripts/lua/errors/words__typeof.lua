-- error: syntax
-- line: 7
-- message: 'then' expected near 'x'
-- hint: type is a function in Lua; write: type(x)

local x = 5
if typeof x == "number" then return 1 end
