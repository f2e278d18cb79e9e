-- error: runtime
-- line: 7
-- message: attempt to call a nil value (method 'toUpperCase')
-- hint: there is no method toUpperCase; write: s:upper()

local s = "abc"
return s:toUpperCase()
