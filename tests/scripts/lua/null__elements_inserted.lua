-- value: [0, null, 1, null]
-- value: [0, null, 1, null, 9]
-- value: [0, 7, null, 1, null, 9]
-- value: 6
local list = json.decode('[null, 1, null]')
local stages = {}
local function note() stages[#stages + 1] = json.decode(json.encode(list)) end
table.insert(list, 1, 0)
note()
table.insert(list, 9)
note()
table.insert(list, 2, 7)
note()
return stages[1], stages[2], stages[3], #list
