-- error: syntax
-- line: 7
-- message: unexpected symbol near '&'
-- hint: Lua writes 'and' for &&; write: if a and b then

local a, b = true, false
if a && b then
  return 1
end
