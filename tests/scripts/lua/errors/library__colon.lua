-- error: runtime
-- line: 6
-- message: calling 'upper' on bad self (string expected, got library string)
-- hint: functions of a library are called with a dot; write: string.upper("x")

return string:upper("x")
