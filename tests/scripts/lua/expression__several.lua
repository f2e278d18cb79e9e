-- value: 1
-- value: "two"
-- value: true
1, "two", true
