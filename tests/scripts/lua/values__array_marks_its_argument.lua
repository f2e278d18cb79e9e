-- value: [1, 2]
-- value: []
local t = array{ 1, 2 }
local u = array()
return t, u
