-- features: metatables
-- error: runtime
-- message: custom text
error(setmetatable({}, { __tostring = function() return "custom text" end }))
