-- error: runtime
-- line: 7
-- message: attempt to perform arithmetic on a nil value (global 'totl')
-- hint: did you mean total?

local total = 5
return totl + 1
