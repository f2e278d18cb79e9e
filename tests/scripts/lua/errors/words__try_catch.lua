-- error: runtime
-- line: 6
-- message: attempt to call a nil value (global 'try')
-- hint: Lua has no try; use: local ok, result = pcall(function() … end) if not ok then … end

try { tostring(1) } catch (e) { print(2) }
