-- features: coroutines
-- value: [[2, 3], [12, 13]]
-- calls: add add add add
return parallel.map({ 0, 10 }, function(base)
  local gen = coroutine.wrap(function() for i = 2, 3 do coroutine.yield(tools.add(base, i)) end end)
  return { gen(), gen() }
end)
