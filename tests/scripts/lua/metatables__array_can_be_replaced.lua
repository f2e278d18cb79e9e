-- features: metatables
-- value: "got a"
local t = setmetatable(array{}, { __index = function(_, k) return "got " .. k end })
return t.a
