-- error: runtime
-- line: 6
-- message: attempt to call a nil value (global 'max')
-- hint: max belongs to a library; write: math.max(1, 2)

return max(1, 2)
