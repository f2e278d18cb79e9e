-- value: [0, 1, 2, 3]
-- value: 3
-- value: 0
-- value: [1, 2]
local t = { 1, 2 }
table.insert(t, 3)
table.insert(t, 1, 0)
local u = { table.unpack(t) }
local last = table.remove(t)
local first = table.remove(t, 1)
return u, last, first, t
