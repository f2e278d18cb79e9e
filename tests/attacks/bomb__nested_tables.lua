-- attack: nest tables without end
-- limits: {"max_memory": 8000000}
-- error: limit memory
local t = {}
while true do t = { t } end
