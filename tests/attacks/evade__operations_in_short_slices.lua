-- attack: spend operations in slices too short to be counted, between yields
-- features: coroutines
-- limits: {"max_operations": 20000, "timeout": 5}
-- error: limit operations
local co = coroutine.wrap(function() while true do coroutine.yield() end end)
while true do co() end
