-- value: 2.0
return 4 / 2
