-- attack: confuse messages with a __name that is huge or no string
-- features: metatables
-- value: false
-- value: "table: 0x000001"
-- value: true
local t = setmetatable({}, { __name = ("N"):rep(100000) })
local ok = pcall(function() return t + 1 end)
return ok, tostring(t), (pcall(tostring, setmetatable({}, { __name = {} })))
