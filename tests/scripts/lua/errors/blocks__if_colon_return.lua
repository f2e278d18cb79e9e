-- error: syntax
-- line: 7
-- message: <name> expected near 'return'
-- hint: Lua has no colon before a block: use then … end; write: if x then return 5 end

local x = 1
if x: return 5
