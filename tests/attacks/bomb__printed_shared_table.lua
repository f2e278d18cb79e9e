-- attack: print a small tree of shared tables that is exponential when written out
-- limits: {"max_memory": 8000000}
-- error: limit memory
local t = { "x" }
for _ = 1, 50 do t = { t, t } end
print(t)
