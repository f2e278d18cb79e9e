-- attack: catch the time limit in an endless nest of pcalls
-- limits: {"timeout": 0.2}
-- error: limit time
local function nest() while true do pcall(nest) end end
nest()
