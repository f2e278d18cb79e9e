-- value: [3, 2, 2, 0]
-- value: []
local list = json.decode('[1, 2, null, null]')
local lengths = {}
list[#list] = nil
lengths[1] = #list
list[#list] = nil
lengths[2] = #list
list[1] = nil
lengths[3] = #list
for i = 1, 2 do list[i] = nil end
lengths[4] = #list
return lengths, list
