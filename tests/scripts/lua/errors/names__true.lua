-- error: runtime
-- line: 7
-- message: attempt to concatenate a nil value (global 'True')
-- hint: Lua writes true, not True

local done = True
return "done: " .. True
