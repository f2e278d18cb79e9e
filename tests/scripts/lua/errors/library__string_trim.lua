-- error: runtime
-- line: 7
-- message: attempt to call a nil value (field 'trim')
-- hint: there is no string.trim; write: s:match("^%s*(.-)%s*$")

local s = " x "
return string.trim(s)
