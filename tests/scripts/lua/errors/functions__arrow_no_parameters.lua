-- error: syntax
-- line: 6
-- message: unexpected symbol near ')'
-- hint: Lua has no => functions; write: function() return 5 end

local now = () => 5
return now()
