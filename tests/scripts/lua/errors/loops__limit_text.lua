-- error: runtime
-- line: 7
-- message: bad 'for' limit (number expected, got string)
-- hint: loop bounds must be numbers: convert the string with tonumber(s)

local n = "x"
for i = 1, n do print(i) end
