-- error: syntax
-- line: 6
-- message: ')' expected near ','
-- hint: Lua has no => functions; write: function(a, b) return a + b end

local add = (a, b) => a + b
return add(1, 2)
