-- error: syntax
-- line: 7
-- message: <eof> expected near '.'
-- hint: Lua joins a list with a function; write: table.concat(list, ", ")

local list = {"a", "b"}
return ", ".join(list)
