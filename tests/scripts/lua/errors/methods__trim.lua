-- error: runtime
-- line: 7
-- message: attempt to call a nil value (method 'trim')
-- hint: there is no method trim; write: s:match("^%s*(.-)%s*$")

local s = " a "
return s:trim()
