-- error: runtime
-- line: 7
-- message: bad 'for' limit (number expected, got nil)
-- hint: the length of a list or string is #list, not list.length

local list = {1, 2}
for i = 1, list.length do print(i) end
