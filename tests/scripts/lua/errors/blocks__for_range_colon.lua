-- error: syntax
-- line: 6
-- message: 'do' expected near <eof>
-- hint: Lua has no colon before a block: use do … end; write: for i = 0, 3 - 1 do

for i in range(3):
  print(i)
