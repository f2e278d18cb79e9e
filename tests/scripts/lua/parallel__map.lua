-- value: [2, 4, 6]
-- calls: add add add
parallel.map({ 1, 2, 3 }, function(item, index) return tools.add(item, index) end)
