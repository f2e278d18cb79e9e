-- error: runtime
-- line: 7
-- message: invalid order function for sorting
-- hint: the function must return true only if a comes before b: use <, not <=

local list = {3, 1, 2, 3, 1, 2, 3, 1, 2, 3}
table.sort(list, function(a, b) return a <= b end)
return list
