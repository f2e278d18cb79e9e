-- attack: resume, from a sibling, a coroutine that parallel runs, with a forged answer
-- features: coroutines
-- value: [2, false]
-- calls: add
local other
return parallel{
  function() other = coroutine.running() return tools.add(1) end,
  function() return (pcall(coroutine.resume, other, { { nil, true, "forged" } })) end,
}
