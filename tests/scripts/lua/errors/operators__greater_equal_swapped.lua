-- error: syntax
-- line: 7
-- message: 'then' expected near '='
-- hint: greater or equal is >= in Lua, not =>

local x = 5
if x => 5 then return 1 end
