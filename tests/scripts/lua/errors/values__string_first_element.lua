-- error: runtime
-- line: 7
-- message: a string has no element 0
-- hint: characters are counted from 1; write: r.name:sub(1, 1)

local r = {name = "abc"}
return r.name[0]
