x = 1
-- next run
x = nil
-- next run
-- value: null
x
