-- attack: spend time by switching between coroutines
-- features: coroutines
-- limits: {"timeout": 0.2}
-- error: limit time
local a = coroutine.wrap(function() while true do coroutine.yield() end end)
while true do a() end
