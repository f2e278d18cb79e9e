-- error: runtime
-- line: 7
-- message: attempt to add a 'string' with a 'string'
-- hint: + only adds numbers, text is joined with ..; write: return "Hello " .. name

local name = "Ada"
return "Hello " + name
