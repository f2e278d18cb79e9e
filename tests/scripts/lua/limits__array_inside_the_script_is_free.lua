-- limits: {"max_array": 10}
-- value: 1000
local t = {}
for i = 1, 1000 do t[i] = i end
return #t
