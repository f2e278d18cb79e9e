-- error: syntax
-- line: 7
-- message: ']' expected near ':'
-- hint: Lua has no slices; use s:sub(first, last) for a string, {table.unpack(list, first, last)} for a list

local list = {1, 2, 3}
return list[1:2]
