-- features: coroutines
-- value: false
-- value: "oops"
local co = coroutine.create(function() error("oops", 0) end)
return coroutine.resume(co)
