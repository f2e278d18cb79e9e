-- error: runtime
-- line: 8
-- message: value.self is value again: a table that contains itself cannot leave the script
-- hint: leave out the field that points back

local t = {}
t.self = t
return t
