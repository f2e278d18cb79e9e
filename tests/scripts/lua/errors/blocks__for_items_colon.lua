-- error: syntax
-- line: 7
-- message: 'do' expected near <eof>
-- hint: Lua has no colon before a block: use do … end; write: for key, value in pairs(t) do

local t = {a = 1}
for key, value in t.items():
  print(key, value)
