-- value: [2, "it failed"]
-- calls: add fail
parallel{
  function() local _, v = pcall(tools.add, 1) return v end,
  function() local _, e = pcall(tools.fail) return e.message end,
}
