-- error: runtime
-- line: 7
-- message: a string has no element 2
-- hint: strings cannot be indexed; write: s:sub(2, 2)

local s = "abc"
return s[2]
