-- error: runtime
-- line: 7
-- message: attempt to call a nil value (method 'startsWith')
-- hint: there is no method startsWith; write: s:sub(1, #"ab") == "ab"

local s = "abc"
return s:startsWith("ab")
