-- attack: raise a small tree of shared tables that is exponential when reported
-- error: runtime
local t = { "x" }
for _ = 1, 50 do t = { t, t } end
error(t)
