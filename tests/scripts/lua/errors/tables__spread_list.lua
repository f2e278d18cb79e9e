-- error: syntax
-- line: 7
-- message: '}' expected near 'list'
-- hint: Lua has no spread operator; write: table.unpack(list)

local list = {1, 2}
return {...list}
