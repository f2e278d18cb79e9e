-- value: {"$pairs": [[1, "a"], [3, "c"]]}
local t = {}
t[1], t[3] = "a", "c"
return t
