-- error: syntax
-- line: 6
-- message: syntax error near '=='
-- hint: == compares, = assigns; to assign write: x = 5

x == 5
return x
