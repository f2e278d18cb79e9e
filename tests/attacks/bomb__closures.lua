-- attack: make closures without end
-- limits: {"max_memory": 8000000}
-- error: limit memory
local keep = {}
while true do local n = #keep keep[n + 1] = function() return n end end
