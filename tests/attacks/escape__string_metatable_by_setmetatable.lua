-- attack: give strings another metatable
-- features: metatables
-- error: runtime
-- message has: table expected, got string
setmetatable("", { __index = function() return "hacked" end })
