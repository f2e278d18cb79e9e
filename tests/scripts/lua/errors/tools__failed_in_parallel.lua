-- error: tool
-- line: 8
-- message: it failed
-- calls: add fail

local both = parallel{
  function() return tools.add{a = 1} end,
  function() return tools.fail{} end,
}
return both
