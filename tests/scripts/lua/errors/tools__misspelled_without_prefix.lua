-- error: runtime
-- line: 6
-- message: attempt to call a nil value (global 'rowz')
-- hint: did you mean tools.rows?

return rowz{count = 1}
