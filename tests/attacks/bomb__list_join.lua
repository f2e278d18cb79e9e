-- attack: make a text that is longer than max_string with list.join
-- limits: {"max_string": 100000}
-- error: limit string
local text = ("x"):rep(1000)
local items = {}
for index = 1, 1000 do items[index] = text end
pcall(list.join, items, text)
return "not reached"
