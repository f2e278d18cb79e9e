-- error: runtime
-- line: 6
-- message: attempt to call a nil value (global 'int')
-- hint: Lua has no int; write: math.floor("5")

return int("5")
