-- error: syntax
-- line: 7
-- message: ']' expected near ':'
-- hint: Lua has no slices; of a text take s:sub(first, last), of a list {table.unpack(list, first, last)}

local list = {1, 2, 3}
return list[1:2]
