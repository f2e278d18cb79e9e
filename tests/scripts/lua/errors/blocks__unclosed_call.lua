-- error: syntax
-- line: 7
-- message: ')' expected (to close '(' at line 6) near <eof>
-- hint: the ( of line 6 is never closed: add )

print("a"
