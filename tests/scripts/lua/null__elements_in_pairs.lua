-- value: [1, 2, 3, "extra"]
local list = json.decode('[null, 5, null]')
list.extra = true
local keys = {}
for key in pairs(list) do keys[#keys + 1] = key end
return keys
