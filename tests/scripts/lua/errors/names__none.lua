-- error: runtime
-- line: 7
-- message: attempt to index a nil value (global 'None')
-- hint: Lua writes nil, not None

local x = 5
return None.x
