-- error: runtime
-- line: 7
-- message: attempt to call a nil value (field 'startswith')
-- hint: there is no string.startswith; write: s:sub(1, #"ab") == "ab"

local s = "abc"
return string.startswith(s, "ab")
