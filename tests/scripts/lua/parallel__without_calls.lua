-- value: [1, 2]
parallel{ function() return 1 end, function() return 2 end }
