-- error: runtime
-- line: 6
-- message: attempt to call a nil value (global 'str')
-- hint: Lua has no str; write: tostring(5)

return "n: " .. str(5)
