-- features: metatables
-- prints: "me\n"
print(setmetatable({}, { __tostring = function() return "me" end }))
