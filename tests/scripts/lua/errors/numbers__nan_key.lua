-- error: runtime
-- line: 7
-- message: table index is NaN
-- hint: a key must not be NaN, the result of 0/0: test it before

local t = {}
t[0 / 0] = 1
