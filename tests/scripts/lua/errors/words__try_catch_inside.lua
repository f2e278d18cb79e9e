-- error: runtime
-- line: 7
-- message: attempt to call a nil value (global 'risky')
-- hint: Lua has no try; use: local ok, result = pcall(function() … end) if not ok then … end

try {
  risky()
} catch (e) {
  print(e)
}
