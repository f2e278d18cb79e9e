-- error: runtime
-- line: 8
-- message: value.self is value again: a table that contains itself cannot leave the script
-- hint: remove the field that refers back to the table

local t = {}
t.self = t
return t
