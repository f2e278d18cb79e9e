-- value: [1, 2, 3]
local fs = {}
for i = 1, 3 do fs[i] = function() return i end end
return { fs[1](), fs[2](), fs[3]() }
