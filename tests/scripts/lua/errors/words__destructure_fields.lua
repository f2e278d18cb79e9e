-- error: syntax
-- line: 7
-- message: <name> expected near '{'
-- hint: Lua has no destructuring; write: local id, total = order.id, order.total

local order = {id = 1, total = 2}
local {id, total} = order
return id
