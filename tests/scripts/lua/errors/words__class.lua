-- error: syntax
-- line: 6
-- message: syntax error near 'Point'
-- hint: Lua has no classes; use tables and functions

class Point
end
