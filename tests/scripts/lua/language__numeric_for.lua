-- value: [1, 3, 5]
local t = {}
for i = 1, 6, 2 do t[#t + 1] = i end
return t
