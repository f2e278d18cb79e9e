-- attack: make more calls than allowed in one batch
-- limits: {"max_tool_calls": 3}
-- error: limit calls
local fs = {}
for i = 1, 10 do fs[i] = function() return tools.add(i) end end
parallel(fs)
