-- value: "table: 0x000001 table: 0x000001 function: 0x000002"
local t = {}
return string.format("%s %s %s", t, t, function() end)
