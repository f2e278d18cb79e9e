-- error: syntax
-- line: 7
-- message: 'then' expected near <eof>
-- hint: Lua has no braces around blocks; they begin with then and close with end; write: if (x == 1) then

local x = 1
if (x == 1) {
  print(x)
}
