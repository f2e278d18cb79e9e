-- error: runtime
-- line: 7
-- message: attempt to add a 'string' with a 'number'
-- hint: + only adds numbers, text is joined with ..; write: print("n: " .. n)

local n = 5
print("n: " + n)
