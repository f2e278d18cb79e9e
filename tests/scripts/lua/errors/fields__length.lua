-- error: runtime
-- line: 7
-- message: attempt to perform arithmetic on a nil value (field 'length')
-- hint: the length of a list or string is #list, not list.length

local list = {1, 2}
return list.length + 1
