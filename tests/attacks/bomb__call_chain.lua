-- attack: call through a long chain of __call
-- features: metatables
-- value: false
local t = {}
for _ = 1, 5000 do t = setmetatable({}, { __call = t }) end
return (pcall(t))
