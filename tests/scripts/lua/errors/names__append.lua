-- error: runtime
-- line: 7
-- message: attempt to call a nil value (global 'append')
-- hint: Lua has no append; write: table.insert(list, 5)

local list = {}
append(list, 5)
