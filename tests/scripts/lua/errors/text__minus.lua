-- error: runtime
-- line: 6
-- message: attempt to sub a 'string' with a 'number'
-- hint: arithmetic needs numbers: convert the string with tonumber(s)

return "abc" - 1
