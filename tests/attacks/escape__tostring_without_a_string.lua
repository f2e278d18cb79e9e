-- attack: return something else than a string from __tostring
-- features: metatables
-- value: false
-- value: true
local t = setmetatable({}, { __tostring = function() return {} end })
local ok, e = pcall(tostring, t)
return ok, e:find("must return a string", 1, true) ~= nil
