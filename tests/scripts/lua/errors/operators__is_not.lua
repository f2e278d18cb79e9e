-- error: syntax
-- line: 7
-- message: <eof> expected near 'is'
-- hint: Lua compares with ~=, not is; write: return x ~= nil

local x = 1
return x is not None
