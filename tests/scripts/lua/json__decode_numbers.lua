-- value: 9223372036854775807
-- value: 1.0
-- value: 1.8446744073709552e+19
-- value: -0.0
return json.decode("9223372036854775807"), json.decode("1.0"), json.decode("18446744073709551616"), json.decode("-0.0")
