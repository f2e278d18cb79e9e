-- error: syntax
-- line: 7
-- message: unexpected symbol near 'return'
-- hint: Lua has no braces around blocks; use then … end; write: if (x == 1) then return x; end

local x = 1
if (x == 1) { return x; }
