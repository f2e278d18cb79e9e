-- error: syntax
-- line: 7
-- message: unexpected symbol near '!'
-- hint: Lua writes 'not' for !; write: if (not a and b ~= nil) then

local a, b = true, false
if (!a && b != nil) {
  return 1
}
