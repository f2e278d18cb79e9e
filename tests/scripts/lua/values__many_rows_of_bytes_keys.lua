-- value: 8
local t = {}
for i = 1, 8 do t[i] = { ["\255"] = i } end
return #t
