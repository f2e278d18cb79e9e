-- value: "nil"
-- value: 1
-- calls: echo
local r = table.pack(tools.echo{ value = null })
return type(r[1]), r.n
