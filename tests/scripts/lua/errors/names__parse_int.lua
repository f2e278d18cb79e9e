-- error: runtime
-- line: 6
-- message: attempt to call a nil value (global 'parseInt')
-- hint: Lua has no parseInt; write: math.floor(tonumber("5"))

return parseInt("5")
