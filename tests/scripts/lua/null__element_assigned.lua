-- value: [1, 2, 3, null, 5]
-- value: 5
local list = json.decode('[1, null, 3, null]')
list[2] = 2
list[#list + 1] = 5
return list, #list
