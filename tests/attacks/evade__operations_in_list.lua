-- attack: spend operations inside list, and catch what ends the run
-- limits: {"max_operations": 20000}
-- error: limit operations
local many = {}
for index = 1, 100 do many[index] = index end
while true do pcall(list.sort_by, many, function(n) return -n end) end
