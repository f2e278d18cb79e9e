-- features: metatables
-- value: "concat insert move pack remove sort unpack "
-- value: "a b "
-- value: "z y "
local names, own, by_pairs = "", "", ""
for name in pairs(table) do names = names .. name .. " " end
for key in pairs(setmetatable({ b = 1, a = 2 }, { __index = function() error("not raw") end })) do own = own .. key .. " " end
local z = setmetatable({}, { __pairs = function() return function(_, k) return not k and "z" or k == "z" and "y" or nil end end })
for key in pairs(z) do by_pairs = by_pairs .. key .. " " end
return names, own, by_pairs
