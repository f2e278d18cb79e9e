-- limits: {"max_string": 1000}
-- error: limit string
-- message has: max_string is 1
("x"):rep(1001)
-- next run
-- value: 1000
#("x"):rep(1000)
