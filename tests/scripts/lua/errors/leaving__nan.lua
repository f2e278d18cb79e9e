-- error: runtime
-- line: 7
-- message: value is NaN (not a number), which is not a JSON number
-- hint: it usually comes from a division by 0: check the divisor first

local n = 0
return 0 / n
