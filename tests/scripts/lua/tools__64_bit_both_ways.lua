-- value: 9223372036854775807
-- value: -9223372036854775808
-- calls: echo echo
return tools.echo{ value = math.maxinteger }, tools.echo{ value = math.mininteger }
