-- error: runtime
-- line: 7
-- message: attempt to perform arithmetic on a nil value (field '?')
-- hint: lists start at 1; write: list[1]

local list = {1, 2}
return list[0] + 1
