-- attack: return hundreds of thousands of values
-- error: limit array
local t = {}
for i = 1, 200000 do t[i] = i end
return table.unpack(t)
