-- error: syntax
-- line: 7
-- message: 'then' expected near 'else'
-- hint: Lua has no `a if b else c`; write: local x if y then x = nil else x = 1 end

local y = true
local x = None if y else 1
return x
