-- error: syntax
-- line: 7
-- message: ')' expected (to close '(' at line 6) near 'local'
-- hint: the ( of line 6 is not closed before this line: add )

print("a"
local x = 1
