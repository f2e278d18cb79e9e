-- attack: have a small tree of shared tables written out as an exponential text
-- limits: {"max_memory": 8000000}
-- error: limit memory
local t = { "x" }
for _ = 1, 50 do t = { t, t } end
return #json.encode(t)
