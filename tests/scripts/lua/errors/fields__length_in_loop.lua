-- error: runtime
-- line: 7
-- message: bad 'for' limit (number expected, got nil)
-- hint: write: #list

local list = {1, 2}
for i = 1, list.length do print(i) end
