-- error: syntax
-- line: 6
-- message: function arguments expected near '*'
-- hint: Lua has no lambda; write: function(x) return x * 2 end

local double = lambda x: x * 2
return double(2)
