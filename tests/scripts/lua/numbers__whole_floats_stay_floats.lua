-- value: 1.0
-- value: 1e+15
-- value: 9007199254740992.0
return 1.0, 1e15, 2 ^ 53
