-- error: syntax
-- line: 7
-- message: syntax error near 'x'
-- hint: print is a function; write: print(x)

local x = 5
print x
