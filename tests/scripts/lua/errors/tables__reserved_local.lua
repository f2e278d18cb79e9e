-- error: syntax
-- line: 6
-- message: <name> expected near 'end'
-- hint: 'end' is a reserved word in Lua: choose another name

local end = 5
