-- error: runtime
-- line: 6
-- message: attempt to call a nil value (global 'Tostring')
-- hint: did you mean tostring?

return Tostring(5)
