-- value: [{"a": 1}, {"a": 2}, {"a": 3}, {"a": 4}, {"a": 5}, {"a": 6}, {"a": 7}, {"a": 8, "b": 1}]
local t = {}
for i = 1, 8 do t[i] = { a = i } end
t[8].b = 1
return t
