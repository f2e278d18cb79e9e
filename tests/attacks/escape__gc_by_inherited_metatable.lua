-- attack: hide __gc behind an __index of the metatable
-- features: metatables
-- value: null
local mt = setmetatable({}, { __index = { __gc = function() ran = true end, __mode = "k" } })
for _ = 1, 1000 do setmetatable({}, mt) end
for i = 1, 200000 do local _ = { i } end
return ran
