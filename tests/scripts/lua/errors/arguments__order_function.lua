-- error: runtime
-- line: 7
-- message: invalid order function for sorting
-- hint: the function must say whether a comes before b and be false for equal ones: use < and not <=

local list = {3, 1, 2, 3, 1, 2, 3, 1, 2, 3}
table.sort(list, function(a, b) return a <= b end)
return list
