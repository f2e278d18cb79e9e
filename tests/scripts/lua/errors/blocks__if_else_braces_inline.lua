-- error: syntax
-- line: 7
-- message: unexpected symbol near 'return'
-- hint: Lua has no braces around blocks; use then … end; write: if (x == 1) then return 1 else return 2 end

local x = 1
if (x == 1) { return 1 } else { return 2 }
