-- error: syntax
-- line: 7
-- message: <name> expected near '('
-- hint: a loop's header has no parentheses; write: for key, value in pairs(t) do

local t = {a = 1}
for (const [key, value] of Object.entries(t)) {
  print(key, value)
}
