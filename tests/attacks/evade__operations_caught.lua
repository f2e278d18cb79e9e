-- attack: catch the operations limit and go on
-- limits: {"max_operations": 10000, "timeout": 5}
-- error: limit operations
while true do pcall(function() while true do pcall(error) end end) end
