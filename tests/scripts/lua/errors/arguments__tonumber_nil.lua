-- error: runtime
-- line: 6
-- message: attempt to perform arithmetic on a nil value
-- hint: tonumber returned nil: its argument is not a number

return tonumber("abc") + 1
