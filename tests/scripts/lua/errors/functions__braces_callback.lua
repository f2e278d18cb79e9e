-- error: syntax
-- line: 7
-- message: unexpected symbol near '{'
-- hint: Lua has no braces around blocks; a function's body ends with end; write: table.sort(list, function(a, b) return a < b end)

local list = {2, 1}
table.sort(list, function(a, b) { return a < b })
