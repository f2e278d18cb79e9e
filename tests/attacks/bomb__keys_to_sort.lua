-- attack: have a huge map sorted again and again, with and without pcall
-- limits: {"timeout": 0.5, "max_memory": 30000000}
-- error: limit time
local map = {}
for index = 1, 100000 do map["key" .. index] = index end
while true do pcall(function() for _ in pairs(map) do break end next(map) end) end
