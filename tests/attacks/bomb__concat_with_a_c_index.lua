-- attack: keep C busy with joining what a C function makes
-- features: metatables
-- error: limit memory
return #table.concat(setmetatable({}, { __index = type }), "", 1, 2 ^ 53)
