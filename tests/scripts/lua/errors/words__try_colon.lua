-- error: syntax
-- line: 8
-- message: syntax error near 'Exception'
-- hint: Lua has no try; use: local ok, result = pcall(function() … end) if not ok then … end

try:
  foo()
except Exception as e:
  print(e)
