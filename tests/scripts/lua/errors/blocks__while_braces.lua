-- error: syntax
-- line: 6
-- message: 'do' expected near '{'
-- hint: Lua has no braces around blocks; use do … end; write: while true do

while true {
  print(1)
}
