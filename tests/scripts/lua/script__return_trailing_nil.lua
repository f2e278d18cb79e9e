-- value: 1
-- value: null
return 1, nil
