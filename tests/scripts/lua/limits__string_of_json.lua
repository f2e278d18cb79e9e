-- limits: {"max_string": 1000}
-- error: limit string
local t = {}
for i = 1, 300 do t[i] = 12345 end
json.encode(t)
