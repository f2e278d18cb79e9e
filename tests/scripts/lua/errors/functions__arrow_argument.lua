-- error: syntax
-- line: 7
-- message: ')' expected near ','
-- hint: Lua has no => functions; write: function(a, b) return a < b end

local list = {3, 1, 2}
table.sort(list, (a, b) => a < b)
return list
