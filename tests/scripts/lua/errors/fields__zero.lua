-- error: runtime
-- line: 7
-- message: attempt to index a nil value (field '?')
-- hint: lists start at 1; write: list[1]

local list = {{name = "a"}}
return list[0].name
