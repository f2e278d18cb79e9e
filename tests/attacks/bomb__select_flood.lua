-- attack: flood the stack with arguments again and again
-- value: "number"
local t = {}
for i = 1, 200000 do t[i] = i end
for _ = 1, 20 do select(-1, table.unpack(t)) end
return type(select("#", table.unpack(t)))
