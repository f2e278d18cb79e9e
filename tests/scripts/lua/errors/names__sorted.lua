-- error: runtime
-- line: 7
-- message: attempt to call a nil value (global 'sorted')
-- hint: Lua has no sorted; table.sort(list) sorts a list in place

local list = {2, 1}
return sorted(list)
