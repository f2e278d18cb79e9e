-- error: runtime
-- line: 7
-- message: attempt to call a nil value (global 'max')
-- hint: max belongs to a library; write: math.max(table.unpack(list))

local list = {1, 2}
return max(list)
