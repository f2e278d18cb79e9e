-- error: syntax
-- line: 7
-- message: <eof> expected near '?'
-- hint: Lua has no ??; use or; write: return a or 5

local a
return a ?? 5
