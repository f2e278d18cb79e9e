x = 41
-- next run
x = x + 1
-- next run
-- value: 42
x
