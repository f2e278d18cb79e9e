-- error: syntax
-- line: 7
-- message: unexpected symbol near '$'
-- hint: names have no $ in Lua; write: total

local total = 5
return $total
