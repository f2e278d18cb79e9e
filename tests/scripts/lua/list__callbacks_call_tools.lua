-- calls: add add add add
-- value: [2, 3]
-- value: [[11, 12], [21]]
local one = list.map({ 1, 2 }, function(n) return tools.add { a = n } end)
local both = parallel {
  function() return list.map({ 1 }, function(n) return tools.add { a = n, b = 10 } end) end,
  function() return list.map({ 1 }, function(n) return tools.add { a = n, b = 20 } end) end,
}
return one, { { 11, 12 }, both[2] }
