-- error: syntax
-- line: 7
-- message: function arguments expected near ']'
-- hint: Lua has no slices; of a text take s:sub(first, last), of a list {table.unpack(list, first, last)}

local list, a, b = {1, 2, 3}, 1, 2
return list[a:b]
