-- error: runtime
-- line: 7
-- message: attempt to call a nil value (field 'insert')
-- hint: the local 'table' of line 6 hides the library of that name: rename it

local table = {1, 2}
table.insert(table, 3)
