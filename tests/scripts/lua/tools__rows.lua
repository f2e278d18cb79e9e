-- value: 20
-- value: "row 20"
-- value: true
-- calls: rows
local t = tools.rows(20)
return #t, t[20].name, t[20].even
