-- value: true
return math.maxinteger + 1 == math.mininteger
