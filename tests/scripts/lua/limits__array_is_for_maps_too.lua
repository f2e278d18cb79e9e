-- limits: {"max_array": 10}
-- error: limit array
local t = {}
for i = 1, 11 do t["k" .. i] = i end
return t
