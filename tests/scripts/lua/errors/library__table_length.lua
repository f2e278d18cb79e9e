-- error: runtime
-- line: 7
-- message: attempt to call a nil value (field 'length')
-- hint: there is no table.length; write: #list

local list = {1, 2}
return table.length(list)
