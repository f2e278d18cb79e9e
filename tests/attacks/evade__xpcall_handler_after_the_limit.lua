-- attack: go on in the handler once the limit has been raised
-- limits: {"timeout": 0.2}
-- error: limit time
local function again() xpcall(function() while true do end end, again) while true do end end
again()
