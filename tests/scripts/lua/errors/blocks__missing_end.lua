-- error: syntax
-- line: 8
-- message: 'end' expected (to close 'for' at line 6) near <eof>
-- hint: the for of line 6 is never closed: add end

for i = 1, 3 do
  print(i)
