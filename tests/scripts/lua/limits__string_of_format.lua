-- limits: {"max_string": 1000}
-- error: limit string
local s = ("x"):rep(600)
string.format("%s%s", s, s)
