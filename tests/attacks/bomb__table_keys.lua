-- attack: fill a table with keys without end
-- limits: {"max_memory": 8000000}
-- error: limit memory
local t = {}
local i = 0
while true do i = i + 1 t["key" .. i] = i end
