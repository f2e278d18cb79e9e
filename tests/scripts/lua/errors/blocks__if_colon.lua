-- error: syntax
-- line: 7
-- message: 'then' expected near ':'
-- hint: Lua has no colon before a block: use then … end; write: if x == 1 then

local x = 1
if x == 1:
  print(x)
