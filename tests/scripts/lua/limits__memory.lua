-- limits: {"max_memory": 2000000}
-- error: limit memory
kept = 1
local t = {}
for i = 1, 10000000 do t[i] = i end
-- next run
-- value: 1
kept
