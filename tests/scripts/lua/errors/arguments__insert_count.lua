-- error: runtime
-- line: 7
-- message: wrong number of arguments to 'insert'
-- hint: write table.insert(list, value) to append, table.insert(list, position, value) to insert

local list = {}
table.insert(list, 1, "x", "y")
