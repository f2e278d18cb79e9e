-- features: coroutines
-- value: ["suspended", "dead"]
-- value: [true, 1, 2]
-- value: [true, 5]
-- value: false
local co = coroutine.create(function(a, b) local c = coroutine.yield(a, b) return c end)
local before = coroutine.status(co)
local first = { coroutine.resume(co, 1, 2) }
local second = { coroutine.resume(co, 5) }
local ok = coroutine.resume(co)
return { before, coroutine.status(co) }, first, second, ok
