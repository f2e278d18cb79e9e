-- value: [3, 2, 1]
local t = {}
for i = 3, 1, -1 do t[#t + 1] = i end
return t
