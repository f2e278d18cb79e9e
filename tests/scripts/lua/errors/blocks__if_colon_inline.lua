-- error: syntax
-- line: 7
-- message: 'then' expected near <eof>
-- hint: Lua has no colon before a block: use then … end; write: if x == nil then print(1) end

local x = 1
if x == None: print(1)
