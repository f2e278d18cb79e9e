-- value: [1, null, 3]
-- value: {"b": 2}
-- value: [1, 2]
-- value: {"$pairs": [[2, "b"], [3, "c"]]}
local first
return { 1, null, 3 }, { a = null, b = 2 }, { 1, 2, null }, { first, "b", "c" }
