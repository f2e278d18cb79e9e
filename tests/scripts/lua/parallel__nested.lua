-- value: [[1, 2], [3, 4]]
-- calls: add add add add
parallel.map({ 0, 2 }, function(base)
  return parallel.map({ 1, 2 }, function(i) return tools.add(base, i) end)
end)
