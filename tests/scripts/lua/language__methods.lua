-- value: "Ann is 3"
local o = { name = "Ann", age = 3 }
function o:say() return self.name .. " is " .. self.age end
return o:say()
