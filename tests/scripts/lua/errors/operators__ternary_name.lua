-- error: syntax
-- line: 7
-- message: <eof> expected near '?'
-- hint: Lua has no ?: operator; write: if a then return b else return 5 end

local a, b = true, false
return a ? b : 5
