-- value: [1, 2, 3, null, null]
-- value: 5
local list = json.decode('[3, null, 1, null, 2]')
table.sort(list, function(a, b) return (a or math.huge) < (b or math.huge) end)
return list, #list
