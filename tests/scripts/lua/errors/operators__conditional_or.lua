-- error: syntax
-- line: 7
-- message: <eof> expected near 'if'
-- hint: Lua has no `a if b else c`; write: return (a or b) and "yes" or "no"

local a, b = false, true
return "yes" if a or b else "no"
