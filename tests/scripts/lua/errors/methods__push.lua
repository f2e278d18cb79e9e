-- error: runtime
-- line: 7
-- message: attempt to call a nil value (field 'push')
-- hint: there is no method push; write: table.insert(list, 5)

local list = {}
list.push(5)
