-- error: runtime
-- line: 6
-- message: 'True' is not defined
-- hint: Lua writes true, not True; write: local done = true

local done = True
return "done: " .. True
