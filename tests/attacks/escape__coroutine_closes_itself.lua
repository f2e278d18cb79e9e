-- attack: close a running coroutine, or one that waits for another
-- features: coroutines
-- value: [false, false]
local results = {}
local outer
outer = coroutine.create(function()
  results[1] = pcall(coroutine.close, coroutine.running())
  coroutine.wrap(function() results[2] = pcall(coroutine.close, outer) end)()
end)
coroutine.resume(outer)
return results
