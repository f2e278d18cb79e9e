-- value: [true, true, true, 3]
-- calls: echo
local list = tools.echo{ value = { 1, json.null, 3 } }
return { not list[2], list[2] == nil, list[2] == null, list[3] }
