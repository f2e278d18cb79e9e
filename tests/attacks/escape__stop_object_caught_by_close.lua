-- attack: catch the object that stops a run in a __close
-- features: metatables
-- limits: {"timeout": 0.3}
-- error: limit time
local x <close> = setmetatable({}, { __close = function(_, e) caught = e end })
while true do end
-- next run
-- value: null
return caught
