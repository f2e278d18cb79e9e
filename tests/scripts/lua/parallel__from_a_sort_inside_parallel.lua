-- value: [[2, 1], 11]
-- calls: add add
local r = parallel{
  function()
    local t = { 1, 2 }
    table.sort(t, function(a, b) return parallel{ function() return tools.add(a, b) end }[1] > 0 and a > b end)
    return t
  end,
  function() return tools.add(10) end,
}
return r
