-- error: syntax
-- line: 7
-- message: 'then' expected near 'is'
-- hint: Lua compares with ==, not is; write: if x == nil then return 1 end

local x
if x is None then return 1 end
