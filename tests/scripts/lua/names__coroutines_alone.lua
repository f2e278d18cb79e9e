-- features: coroutines
-- value: "table"
-- value: null
return type(coroutine), setmetatable
