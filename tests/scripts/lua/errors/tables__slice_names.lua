-- error: syntax
-- line: 7
-- message: function arguments expected near ']'
-- hint: Lua has no slices; use s:sub(first, last) for a string, {table.unpack(list, first, last)} for a list

local list, a, b = {1, 2, 3}, 1, 2
return list[a:b]
