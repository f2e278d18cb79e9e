-- attack: spend operations in the coroutines of parallel
-- limits: {"max_operations": 20000}
-- error: limit operations
local fs = {}
for i = 1, 50 do fs[i] = function() for j = 1, 10000 do end end end
parallel(fs)
