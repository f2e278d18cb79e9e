-- features: coroutines
-- value: [1, 2, 3]
local gen = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end)
return { gen(), gen(), gen() }
