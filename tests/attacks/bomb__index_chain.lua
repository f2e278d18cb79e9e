-- attack: follow a loop of __index tables
-- features: metatables
-- value: false
-- value: true
local a, b = {}, {}
setmetatable(a, { __index = b })
setmetatable(b, { __index = a })
local ok, e = pcall(function() return a.x end)
return ok, e:find("chain too long", 1, true) ~= nil
