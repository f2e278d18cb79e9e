-- value: 3
-- value: 4
-- value: 5
-- value: 2
-- value: 3
-- value: 2.0
return math.floor(3.7), math.ceil(3.2), math.abs(-5), math.min(3, 2), math.max(1, 3), math.sqrt(4)
