-- error: runtime
-- line: 7
-- message: attempt to add a 'string' with a 'number'
-- hint: + works on numbers only, strings are joined with ..

local n = 5
return "a" + n + "b"
