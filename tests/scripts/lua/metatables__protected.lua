-- features: metatables
-- error: runtime
-- message has: cannot change a protected metatable
setmetatable(setmetatable({}, { __metatable = true }), {})
