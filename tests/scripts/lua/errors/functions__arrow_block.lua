-- error: syntax
-- line: 6
-- message: unexpected symbol near '='
-- hint: Lua has no => functions; write: function(x) … end

local log = (x) => {
  print(x)
}
