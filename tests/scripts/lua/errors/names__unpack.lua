-- error: runtime
-- line: 6
-- message: attempt to call a nil value (global 'unpack')
-- hint: Lua has no unpack; write: table.unpack({1, 2})

return unpack({1, 2})
