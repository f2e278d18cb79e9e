-- error: runtime
-- line: 7
-- message: attempt to compare string with number
-- hint: strings and numbers cannot be compared: convert the string with tonumber(s)

local list = {1, "2", 3}
table.sort(list)
return list
