-- features: metatables
-- value: {"a": 1}
setmetatable({ a = 1 }, { __index = { b = 2 } })
