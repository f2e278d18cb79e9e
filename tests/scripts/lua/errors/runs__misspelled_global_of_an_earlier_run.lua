total = 5
-- next run
-- error: runtime
-- line: 5
-- message: attempt to perform arithmetic on a nil value (global 'totl')
-- hint: did you mean total?
return totl + 1
