-- limits: {"max_array": 10}
-- error: limit array
local t = {}
for i = 1, 11 do t[i] = i end
return { list = t }
-- next run
-- value: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
return { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 }
