-- error: runtime
-- line: 6
-- message: attempt to call a nil value (method 'frobnicate')

local t = {}
t:frobnicate()
