-- error: runtime
-- line: 7
-- message: attempt to call a nil value (global 'insert')
-- hint: insert belongs to a library; write: table.insert(list, 1)

local list = {}
insert(list, 1)
