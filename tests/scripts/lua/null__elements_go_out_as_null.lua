-- value: [1, null, 3, null]
-- value: [1, null, 3, null]
-- value: "[1,null,3,null]"
-- prints: "[1,null,3,null]\n"
-- calls: echo
local list = json.decode('[1, null, 3, null]')
print(list)
return list, tools.echo{ value = list }, json.encode(list)
