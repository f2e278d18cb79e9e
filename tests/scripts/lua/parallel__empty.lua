-- value: []
parallel{}
