-- features: metatables
-- value: {"a": null, "b": 1}
-- value: [null, 2, null]
-- value: ["from the class", true]
-- value: {"a": null, "b": 1}
local Class = { __index = function(_, key) return key == "hello" and "from the class" or nil end }
local object = setmetatable(json.decode('{"a": null, "b": 1}'), Class)
local list = setmetatable(json.decode('[null, 2, null]'), {})
local again = setmetatable(setmetatable(json.decode('{"a": null, "b": 1}'), Class), nil)
return object, list, { object.hello, object.a == nil }, again
