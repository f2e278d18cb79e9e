-- error: runtime
-- line: 6
-- message: attempt to call a nil value (global 'total')
-- hint: total is defined on line 7, after this line runs: move its definition up

local n = total({1})
function total(list) return #list end
return n
