-- value: ["a", null, "c"]
local t = array{}
t[1] = "a"
t[3] = "c"
return t
