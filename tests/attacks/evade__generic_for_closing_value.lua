-- attack: loop in the closing value of a generic for
-- features: metatables
-- limits: {"timeout": 0.2}
-- error: limit time
local closing = setmetatable({}, { __close = function() while true do end end })
for _ in next, { 1 }, nil, closing do break end
