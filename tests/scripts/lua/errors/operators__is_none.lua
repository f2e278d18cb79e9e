-- error: syntax
-- line: 7
-- message: 'then' expected near 'is'
-- hint: Lua compares with ==, not is; write: x == nil

local x
if x is None then return 1 end
