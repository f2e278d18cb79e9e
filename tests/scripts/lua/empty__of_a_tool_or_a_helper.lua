-- value: [[], [], [], [], {}]
local none = json.decode("[]")
return { none, list.filter({ 1 }, function() return false end), list.map({}, "a"), list.take({ 1 }, 0), list.count_by({}, "a") }
