-- error: syntax
-- line: 8
-- message: 'end' expected (to close 'if' at line 6) near 'print'
-- hint: return must be the last statement of its block: nothing may follow it

if true then
  return 1
  print(2)
end
