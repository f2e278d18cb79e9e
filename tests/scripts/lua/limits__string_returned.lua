-- limits: {"max_string": 1000}
-- error: limit string
-- message has: value.a
local s = ("x"):rep(1000)
return { a = s .. "y" }
