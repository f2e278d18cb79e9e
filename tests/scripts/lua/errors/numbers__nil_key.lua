-- error: runtime
-- line: 7
-- message: table index is nil
-- hint: a table key must not be nil: check it before t[key] = value

local t, user = {}, {}
t[user.id] = 1
