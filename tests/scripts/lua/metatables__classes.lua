-- features: metatables
-- value: "Rex says woof"
local Dog = {}
Dog.__index = Dog
function Dog.new(name) return setmetatable({ name = name }, Dog) end
function Dog:speak() return self.name .. " says woof" end
return Dog.new("Rex"):speak()
