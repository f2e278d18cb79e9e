-- error: runtime
-- line: 7
-- message: attempt to compare number with string
-- hint: text and numbers cannot be compared: convert the text with tonumber(text)

local n = "5"
return n > 3
