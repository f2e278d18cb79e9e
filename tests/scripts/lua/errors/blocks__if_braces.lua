-- error: syntax
-- line: 7
-- message: 'then' expected near <eof>
-- hint: Lua has no braces around blocks; use then … end; write: if (x == 1) then

local x = 1
if (x == 1) {
  print(x)
}
