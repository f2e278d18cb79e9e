-- error: runtime
-- line: 7
-- message: bad argument #1 to 'insert' (table expected, got nil)
-- hint: groups.a is nil, but table.insert needs a table there: check it first

local groups = {}
table.insert(groups.a, 5)
