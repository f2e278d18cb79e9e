-- error: syntax
-- line: 6
-- message: syntax error near 'total'
-- hint: Lua defines a function with function … end; write: function total(items) … end

def total(items):
  return 1
