-- error: runtime
-- line: 7
-- message: attempt to call a nil value (field 'pow')
-- hint: there is no math.pow; write: (a + 1) ^ b

local a, b = 2, 3
return math.pow(a + 1, b)
