-- error: runtime
-- line: 7
-- message: table index is nil
-- hint: a key must not be nil: test it before t[key] = value

local t, user = {}, {}
t[user.id] = 1
