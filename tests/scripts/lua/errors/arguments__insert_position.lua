-- error: runtime
-- line: 7
-- message: bad argument #2 to 'insert' (position out of bounds)
-- hint: write table.insert(list, value) to append, table.insert(list, position, value) to insert; a position is from 1 to #list + 1

local list = {}
table.insert(list, 5, "x")
