-- attack: start a million functions in parallel
-- error: limit memory
local f = function() return tools.add(1) end
local fs = {}
for i = 1, 300000 do fs[i] = f end
parallel(fs)
