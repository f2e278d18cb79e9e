-- attack: yield what looks like the prelude's own request
-- features: coroutines
-- value: [true]
return parallel{
  function()
    local co = coroutine.create(function() coroutine.yield({ { target = "tools.add", args = "[1]" } }) end)
    return coroutine.resume(co)
  end,
}
