-- error: syntax
-- line: 6
-- message: unexpected symbol near '='
-- hint: Lua has no => functions; write: function(x) return x * 2 end

local double = x => x * 2
return double(2)
