-- value: "one"
local t = {}
t[1.0] = "one"
return t[1]
