-- attack: return a value nested deeper than any parser likes
-- error: limit depth
local t = {}
for _ = 1, 100000 do t = { t } end
return t
