-- error: syntax
-- line: 7
-- message: <eof> expected near 'if'
-- hint: Lua has no `a if b else c`; write: if a or b then return "yes" else return "no" end

local a, b = false, true
return "yes" if a or b else "no"
