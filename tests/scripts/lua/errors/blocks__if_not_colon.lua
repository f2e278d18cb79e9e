-- error: syntax
-- line: 7
-- message: 'then' expected near 'end'
-- hint: Lua has no colon before a block: use then … end; write: if not x then

local x = 1
if not x:
  print(1)
end
