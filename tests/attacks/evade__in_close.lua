-- attack: loop in __close while the limit unwinds the stack
-- features: metatables
-- limits: {"timeout": 0.2}
-- error: limit time
local closing = { __close = function() while true do end end }
local a <close> = setmetatable({}, closing)
local b <close> = setmetatable({}, closing)
while true do end
