-- features: coroutines
gen = coroutine.wrap(function() local n = 0 while true do n = n + 1 coroutine.yield(n) end end)
-- next run
-- value: 1
gen()
-- next run
-- value: 2
gen()
