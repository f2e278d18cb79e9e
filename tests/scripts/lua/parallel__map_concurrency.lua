-- value: [2, 3, 4, 5]
-- calls: add add add add
parallel.map({ 1, 2, 3, 4 }, function(item) return tools.add(item) end, { concurrency = 2 })
