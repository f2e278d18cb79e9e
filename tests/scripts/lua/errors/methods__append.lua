-- error: runtime
-- line: 7
-- message: attempt to call a nil value (field 'append')
-- hint: there is no method append; write: table.insert(list, 5)

local list = {}
list.append(5)
