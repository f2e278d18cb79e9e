-- attack: use an error object whose fields are computed, to run code in the host's report
-- features: metatables
-- error: runtime
-- message: {}
error(setmetatable({}, { __index = function() while true do end end }))
