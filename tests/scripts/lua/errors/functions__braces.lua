-- error: syntax
-- line: 6
-- message: unexpected symbol near '{'
-- hint: Lua has no braces around blocks; a function's body ends with end; write: function total(items)

function total(items) {
  return 1
}
