-- error: syntax
-- line: 6
-- message: <name> expected near '('
-- hint: a loop's header has no parentheses; write: for i = 1, 10, 2 do

for (var i = 1; i <= 10; i += 2) {
  print(i)
}
