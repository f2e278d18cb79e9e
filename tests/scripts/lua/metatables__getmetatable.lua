-- features: metatables
-- value: true
-- value: "locked"
-- value: null
-- value: null
local mt = {}
local t = setmetatable({}, mt)
local locked = setmetatable({}, { __metatable = "locked" })
return getmetatable(t) == mt, getmetatable(locked), getmetatable("x"), getmetatable(array{})
