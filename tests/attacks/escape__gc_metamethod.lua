-- attack: run code in the garbage collector
-- features: metatables
-- error: runtime
-- message has: the metamethods __gc and __mode are not available
setmetatable({}, { __gc = function() ran = true end })
