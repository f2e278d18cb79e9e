-- error: runtime
-- line: 7
-- message: attempt to compare number with string
-- hint: strings and numbers cannot be compared: convert the string with tonumber(s)

local n = "5"
return n > 3
