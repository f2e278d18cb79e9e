-- error: runtime
-- line: 5
-- message: attempt to call a nil value (global 'frobnicate')

return frobnicate(5)
