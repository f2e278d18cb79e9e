-- value: 1
-- value: null
-- value: 3
return 1, nil, 3
