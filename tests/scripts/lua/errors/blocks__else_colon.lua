-- error: syntax
-- line: 9
-- message: unexpected symbol near ':'
-- hint: Lua has no colon before a block: remove it

local x = 1
if x == 1 then
  print(1)
else:
  print(2)
end
