-- error: runtime
-- line: 6
-- message: attempt to call a nil value (global 'round')
-- hint: Lua has no round; write: math.floor((2.5 * 3) + 0.5)

return round(2.5 * 3)
