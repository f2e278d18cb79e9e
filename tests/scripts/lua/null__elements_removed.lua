-- value: ["a", null, "d"]
-- value: [null, "d", null]
-- value: [null, "d"]
-- value: 2
local list = json.decode('["a", null, null, "d", null]')
local out = {}
out[1] = table.remove(list, 1)
out[2] = table.remove(list, 1)
local stage = json.decode(json.encode(list))
table.remove(list)
local final = json.decode(json.encode(list))
return array{ out[1], out[2], (table.remove(list, 2)) }, stage, final, #stage - #list
