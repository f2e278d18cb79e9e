-- value: true
-- value: {"$pairs": [[0, "zero"]]}
local t = { [0] = "zero" }
return t[0] == "zero", t
