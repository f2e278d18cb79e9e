-- error: syntax
-- line: 7
-- message: 'then' expected near <eof>
-- hint: Lua has no colon before a block: use then … end; write: if x then

local x = true
if x:
  print(x)
