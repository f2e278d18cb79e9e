-- error: runtime
-- line: 7
-- message: attempt to concatenate a nil value (field '?')
-- hint: strings cannot be indexed; write: s:sub(1, 1)

local s = "abc"
return s[1] .. "x"
