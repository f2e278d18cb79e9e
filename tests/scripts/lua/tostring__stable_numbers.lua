-- value: "table: 0x000001"
-- value: "function: 0x000002"
-- value: "table: 0x000001"
local t = {}
local a, b, c = tostring(t), tostring(print), tostring(t)
return a, b, c
