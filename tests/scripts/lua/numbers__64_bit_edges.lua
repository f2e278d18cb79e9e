-- value: 9223372036854775807
-- value: -9223372036854775808
return math.maxinteger, math.mininteger
