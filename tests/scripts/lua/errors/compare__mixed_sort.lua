-- error: runtime
-- line: 7
-- message: attempt to compare string with number
-- hint: text and numbers cannot be compared: convert the text with tonumber(text)

local list = {1, "2", 3}
table.sort(list)
return list
