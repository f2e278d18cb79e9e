-- error: syntax
-- line: 8
-- message: '}' expected (to close '{' at line 7) near '1'
-- hint: Lua has no switch; use if … elseif … else … end, or a table of values

local x = 1
switch (x) {
  case 1: return "one"
}
