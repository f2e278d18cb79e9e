-- error: runtime
-- line: 7
-- message: attempt to call a nil value (global 'len')
-- hint: Lua has no len; write: #list

local list = {1, 2}
return len(list)
