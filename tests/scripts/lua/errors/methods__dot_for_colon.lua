-- error: runtime
-- line: 7
-- message: bad argument #1 to 'upper' (string expected, got no value)
-- hint: methods are called with a colon; write: s:upper()

local s = "abc"
return s.upper()
