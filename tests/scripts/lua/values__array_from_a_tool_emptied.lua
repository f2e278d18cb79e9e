-- value: []
-- calls: rows
local t = tools.rows(1)
t[1] = nil
return t
