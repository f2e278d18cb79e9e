-- attack: catch the hidden metatable of arrays in an __eq of one's own
-- features: metatables
-- value: "nil"
-- prints: "table: 0x000001\n"
local caught
local mt = setmetatable({}, { __eq = function(_, other) caught = other return true end })
local t = setmetatable({}, mt)
print(t)
json.encode(t)
getmetatable(t)
pcall(setmetatable, t, {})
return type(caught)
