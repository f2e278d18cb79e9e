-- error: runtime
-- line: 7
-- message: bad 'for' limit (number expected, got string)
-- hint: a loop counts with numbers: convert the text with tonumber(text)

local n = "x"
for i = 1, n do print(i) end
