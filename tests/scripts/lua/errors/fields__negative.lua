-- error: runtime
-- line: 7
-- message: attempt to index a nil value (field '?')
-- hint: negative indexes do not count from the end; write: list[#list]

local list = {{n = 1}}
return list[-1].n
