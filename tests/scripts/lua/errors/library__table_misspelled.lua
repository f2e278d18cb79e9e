-- error: runtime
-- line: 7
-- message: attempt to call a nil value (field 'isnert')
-- hint: did you mean table.insert?

local list = {}
table.isnert(list, 1)
