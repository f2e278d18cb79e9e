-- limits: {"max_operations": 1000}
-- error: limit operations
for i = 1, 100000 do end
-- next run
-- value: 5
local n = 0
for i = 1, 5 do n = n + 1 end
return n
