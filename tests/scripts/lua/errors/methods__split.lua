-- error: runtime
-- line: 7
-- message: attempt to call a nil value (method 'split')
-- hint: there is no method split; use a loop: for part in s:gmatch("[^ ]+") do … end

local s = "a b"
return s:split(" ")
