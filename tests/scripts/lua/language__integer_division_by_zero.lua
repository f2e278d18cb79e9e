-- error: runtime
-- message: attempt to divide by zero
-- line: 4
return 1 // 0
