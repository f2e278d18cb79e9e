-- error: syntax
-- line: 7
-- message: unexpected symbol near '?'
-- hint: Lua has no ?: operator; write: local size = x > 3 and "big" or "small"

local x = 5
local size = x > 3 ? "big" : "small"
return size
