-- error: runtime
-- line: 7
-- message: attempt to call a nil value (field '?')
-- hint: no tool has that name; docs.search("words") finds tools

local name = "nothing"
return tools[name]{a = 1}
