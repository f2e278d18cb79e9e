-- error: runtime
-- line: 7
-- message: attempt to divide by zero
-- hint: integers cannot be divided by 0: check the divisor first

local n = 0
return 10 // n
