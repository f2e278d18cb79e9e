-- prints: ""
kept = 1
-- next run
-- error: syntax
x = = 1
-- next run
-- value: 1
kept
