-- error: syntax
-- line: 7
-- message: ')' expected near 'args'
-- hint: Lua has no spread operator; write: table.unpack(args)

local args = {1, 2}
return math.max(...args)
