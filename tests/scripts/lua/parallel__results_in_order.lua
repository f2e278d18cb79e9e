-- value: [2, 3, 4]
-- calls: add add add
parallel{ function() return tools.add(1) end, function() return tools.add(2) end, function() return tools.add(3) end }
