-- error: runtime
-- line: 7
-- message: attempt to add a 'string' with a 'number'
-- hint: + only adds numbers, text is joined with ..

local n = 5
return "a" + n + "b"
