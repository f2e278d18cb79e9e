-- features: metatables
-- value: ["k", "v"]
local t = setmetatable({}, { __pairs = function() return function(_, k) if not k then return "k", "v" end end, nil, nil end })
for k, v in pairs(t) do return { k, v } end
