-- value: 2
local n = 0
for i = math.maxinteger - 1, math.maxinteger do n = n + 1 end
return n
