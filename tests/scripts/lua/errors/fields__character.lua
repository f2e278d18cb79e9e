-- error: runtime
-- line: 7
-- message: a string has no element 1
-- hint: strings cannot be indexed; write: s:sub(1, 1)

local s = "abc"
return s[1] .. "x"
