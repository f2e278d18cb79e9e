-- features: coroutines
-- value: [2, [3]]
-- calls: add add
return parallel{
  function() return tools.add(1) end,
  function()
    return coroutine.wrap(function() return parallel{ function() return tools.add(2) end } end)()
  end,
}
