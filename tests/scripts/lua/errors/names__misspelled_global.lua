-- error: runtime
-- line: 6
-- message: attempt to call a nil value (global 'tostrin')
-- hint: did you mean tostring?

return tostrin(5)
