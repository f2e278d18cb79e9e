-- error: runtime
-- line: 7
-- message: attempt to divide by zero
-- hint: whole numbers cannot be divided by 0: test the divisor first

local n = 0
return 10 // n
