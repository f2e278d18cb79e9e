-- value: 1
-- value: 2
assert(1, 2)
