-- error: runtime
-- line: 6
-- message: attempt to call a nil value (global 'Widget')
-- hint: Lua has no new; call the function that creates the value

local d = new Widget()
return d
