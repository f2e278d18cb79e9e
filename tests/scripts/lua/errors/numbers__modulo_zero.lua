-- error: runtime
-- line: 7
-- message: attempt to perform 'n%0'
-- hint: integers cannot be divided by 0: check the divisor first

local n = 0
return 10 % n
