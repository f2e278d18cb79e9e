-- features: coroutines
-- value: true
-- value: "dead"
local co = coroutine.create(function() coroutine.yield() end)
coroutine.resume(co)
return coroutine.close(co), coroutine.status(co)
