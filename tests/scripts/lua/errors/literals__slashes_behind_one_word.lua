-- error: runtime
-- line: 6
-- message: attempt to perform arithmetic on a nil value (global 'first')
-- hint: comments begin with -- in Lua; // divides

local x = 1 // first
return x
