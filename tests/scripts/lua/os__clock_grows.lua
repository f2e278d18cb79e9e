-- value: true
-- value: "float"
local a = os.clock()
for _ = 1, 10 do os.clock() end
return os.clock() >= a, math.type(a)
