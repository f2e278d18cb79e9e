-- value: 1
local t = { ["\255"] = 1 }
return t["\255"]
