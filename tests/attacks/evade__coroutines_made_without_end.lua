-- attack: make coroutines without end, each for a moment
-- features: coroutines
-- limits: {"timeout": 0.3}
-- error: limit time
while true do coroutine.wrap(function() end)() end
