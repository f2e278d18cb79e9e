local y = 1
-- next run
-- value: null
y
