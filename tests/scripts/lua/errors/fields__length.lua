-- error: runtime
-- line: 7
-- message: attempt to perform arithmetic on a nil value (field 'length')
-- hint: write: #list

local list = {1, 2}
return list.length + 1
