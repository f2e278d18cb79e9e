-- error: syntax
-- line: 6
-- message: unexpected symbol near 'local'
-- hint: Lua has no try; use: local ok, result = pcall(function() … end) if not ok then … end

try {
  local x = 5
} catch (e) {
  print(e)
}
