-- attack: creep over the memory limit a little with each run
-- limits: {"max_memory": 1500000}
-- error: limit memory
hoard = hoard or {}
for i = 1, 100000 do hoard[#hoard + 1] = ("x"):rep(1000) .. #hoard end
-- next run
-- error: limit memory
for i = 1, 40 do hoard[#hoard + 1] = ("x"):rep(1000) .. #hoard end
-- next run
-- error: limit memory
for i = 1, 40 do hoard[#hoard + 1] = ("x"):rep(1000) .. #hoard end
-- next run
hoard = nil
