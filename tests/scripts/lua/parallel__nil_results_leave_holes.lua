-- value: [1, null, 3]
parallel{ function() return 1 end, function() end, function() return 3 end }
