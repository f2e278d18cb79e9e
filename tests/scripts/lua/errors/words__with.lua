-- error: syntax
-- line: 6
-- message: syntax error near 'open'
-- hint: Lua has no with; call the functions one after the other

with open("x") as f:
  print(f)
