-- error: syntax
-- line: 7
-- message: <name> expected near '('
-- hint: a loop's header has no parentheses; write: for i = 1, #list do

local list = {1, 2}
for (let i = 0; i < list.length; i++) {
  print(list[i])
}
