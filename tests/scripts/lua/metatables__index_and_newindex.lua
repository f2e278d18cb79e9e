-- features: metatables
-- value: "default"
-- value: 5
local log
local t = setmetatable({}, { __index = function() return "default" end, __newindex = function(_, k, v) log = v end })
t.x = 5
return t.x, log
