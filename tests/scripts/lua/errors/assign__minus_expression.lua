-- error: syntax
-- line: 7
-- message: syntax error near '-'
-- hint: Lua has no -=; write: left = left - (a + b)

local left, a, b = 10, 1, 2
left -= a + b
return left
