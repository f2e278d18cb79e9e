-- error: syntax
-- line: 7
-- message: <name> expected near 'end'
-- hint: 'end' is a reserved word in Lua: use ["end"] instead of .end

local range = {}
range.end = 5
