-- error: runtime
-- line: 6
-- message: attempt to call a nil value (field 'formt')
-- hint: did you mean string.format?

return string.formt("%d", 5)
