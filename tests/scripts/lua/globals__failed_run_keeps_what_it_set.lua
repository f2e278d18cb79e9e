-- error: runtime
before = 1
error("stop here")
after = 1
-- next run
-- value: 1
-- value: null
return before, after
