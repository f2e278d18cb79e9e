-- value: []
local t = array{ 1 }
table.remove(t)
return t
