-- error: syntax
-- line: 7
-- message: 'then' expected near 'else'
-- hint: Lua has no `a if b else c`; write: local size if x > 3 then size = "big" else size = "small" end

local x = 5
local size = "big" if x > 3 else "small"
return size
