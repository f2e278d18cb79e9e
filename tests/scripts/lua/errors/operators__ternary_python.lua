-- error: syntax
-- line: 7
-- message: 'then' expected near 'else'
-- hint: Lua has no `a if b else c`; write: local size = x > 3 and "big" or "small"

local x = 5
local size = "big" if x > 3 else "small"
return size
