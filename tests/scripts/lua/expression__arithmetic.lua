-- value: 2
1 + 1
