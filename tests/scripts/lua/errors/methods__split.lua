-- error: runtime
-- line: 7
-- message: attempt to call a nil value (method 'split')
-- hint: there is no method split; go over the parts: for part in s:gmatch("[^ ]+") do … end

local s = "a b"
return s:split(" ")
