-- error: runtime
-- line: 7
-- message: attempt to add a 'string' with a 'string'
-- hint: + works on numbers only, strings are joined with ..; write: return "Hello " .. name

local name = "Ada"
return "Hello " + name
