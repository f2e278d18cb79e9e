-- error: syntax
-- line: 6
-- message: 'do' expected near '{'
-- hint: Lua has no braces around blocks; they begin with do and close with end; write: while true do

while true {
  print(1)
}
