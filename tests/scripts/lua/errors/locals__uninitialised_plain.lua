-- error: runtime
-- line: 7
-- message: attempt to perform arithmetic on a nil value (local 'count')
-- hint: count is declared without a value on line 6; write: local count = 0

local count
return count + 1
