-- attack: loop in a coroutine, whose hook is its own
-- features: coroutines
-- limits: {"timeout": 0.2}
-- error: limit time
coroutine.wrap(function() while true do pcall(function() while true do end end) end end)()
