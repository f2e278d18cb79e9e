-- value: [[], [], [], [], [], [], [], [], []]
local t = {}
for i = 1, 9 do t[i] = array{} end
return t
