-- error: syntax
-- line: 7
-- message: syntax error near 't'
-- hint: Lua removes a field by setting it to nil; write: t.a = nil

local t = {a = 1}
delete t.a
return t
