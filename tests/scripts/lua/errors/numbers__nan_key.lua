-- error: runtime
-- line: 7
-- message: table index is NaN
-- hint: a table key must not be NaN (the result of 0/0): check it first

local t = {}
t[0 / 0] = 1
