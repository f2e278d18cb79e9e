-- error: runtime
-- line: 7
-- message: bad 'for' limit (number expected, got table)
-- hint: loop bounds must be numbers: the length of a list is #list

local list = {1, 2}
for i = 1, list do print(i) end
