-- attack: add __gc when the metatable is set already
-- features: metatables
-- value: null
local mt = {}
for _ = 1, 1000 do setmetatable({}, mt) end
mt.__gc = function() ran = true end
for i = 1, 200000 do local _ = { i } end
return ran
