-- error: syntax
-- line: 7
-- message: unexpected symbol near '?'
-- hint: Lua has no ?: operator; write: local size if x > 3 then size = "big" else size = "small" end

local x = 5
local size = x > 3 ? "big" : "small"
return size
