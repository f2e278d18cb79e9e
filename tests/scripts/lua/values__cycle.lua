-- error: runtime
-- message has: value.a.b is value again: a table that contains itself cannot leave the script
local t = { a = {} }
t.a.b = t
return t
