-- error: runtime
-- line: 7
-- message: attempt to compare two table values
-- hint: tables cannot be ordered; compare one of their fields, as in table.sort(list, function(a, b) return a.key < b.key end)

local list = {{n = 2}, {n = 1}}
table.sort(list)
return list
