-- limits: {"max_string": 1000}
-- error: limit string
local s = ("x"):rep(1000)
pcall(tools.echo, { value = s .. "y" })
