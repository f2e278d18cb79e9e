-- error: syntax
-- line: 7
-- message: unexpected symbol near 'return'
-- hint: Lua has no braces around blocks; they begin with then and close with end

local x = 1
if (x == 1) { return x; }
