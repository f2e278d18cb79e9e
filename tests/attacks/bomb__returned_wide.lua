-- attack: return an array larger than allowed
-- error: limit array
local t = {}
for i = 1, 100001 do t[i] = i end
return t
