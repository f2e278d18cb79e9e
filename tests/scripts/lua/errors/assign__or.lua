-- error: syntax
-- line: 7
-- message: syntax error near '|'
-- hint: Lua has no ||=; write: name = name or "nobody"

local name
name ||= "nobody"
return name
