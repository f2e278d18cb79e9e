-- features: metatables
-- value: null
-- value: "function"
return coroutine, type(setmetatable)
