-- attack: overflow the C stack with a __tostring that calls tostring
-- features: metatables
-- value: false
local t
t = setmetatable({}, { __tostring = function() return tostring(t) end })
local ok = pcall(tostring, t)
return ok
