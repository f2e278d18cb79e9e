-- limits: {"max_string": 1000}
-- error: limit string
local t = {}
for i = 1, 200 do t[i] = "123456" end
table.concat(t)
