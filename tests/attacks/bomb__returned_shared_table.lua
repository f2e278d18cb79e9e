-- attack: return a small tree of shared tables that is exponential when written out
-- limits: {"max_array": 10000}
-- error: limit array
local t = { "x" }
for _ = 1, 50 do t = { t, t } end
return t
