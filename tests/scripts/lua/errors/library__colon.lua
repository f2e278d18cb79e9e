-- error: runtime
-- line: 6
-- message: calling 'upper' on bad self (string expected, got library string)
-- hint: library functions are called with a dot; write: string.upper("x")

return string:upper("x")
