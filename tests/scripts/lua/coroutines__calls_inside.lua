-- features: coroutines
-- value: [2, 3]
-- calls: add add
local gen = coroutine.wrap(function() for i = 1, 2 do coroutine.yield(tools.add(i)) end end)
return { gen(), gen() }
