-- error: syntax
-- line: 7
-- message: unexpected symbol near 'if'
-- hint: if is a statement in Lua, not a value; write: condition and a or b

local x = 5
local size = if x > 3 then "big" else "small" end
return size
