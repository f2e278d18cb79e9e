-- value: 2
-- value: false
-- value: 3
return 1 and 2, false and 1, nil or 3
