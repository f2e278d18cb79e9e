-- error: syntax
-- line: 7
-- message: <name> expected near '('
-- hint: a loop's header has no parentheses; write: for _, item in ipairs(list) do

local list = {1, 2}
for (const item of list) {
  print(item)
}
