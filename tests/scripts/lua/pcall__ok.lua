-- value: true
-- value: 1
-- value: 2
pcall(function() return 1, 2 end)
