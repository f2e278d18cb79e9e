-- error: runtime
-- line: 7
-- message: 'None' is not defined
-- hint: Lua writes nil, not None

local x = 5
return None.x
