-- value: 1000
-- value: "n7"
local t = {}
for i = 1, 1000 do t[i] = { id = i, name = "n" .. i } end
local back = json.decode(json.encode(t))
return #back, back[7].name
