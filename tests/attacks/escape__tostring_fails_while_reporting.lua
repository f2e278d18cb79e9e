-- attack: break the report of an error with a __tostring that fails
-- features: metatables
-- error: runtime
-- message: (its __tostring failed)
error(setmetatable({}, { __tostring = function() error("ha") end }))
