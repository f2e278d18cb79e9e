-- attack: change a method of all strings by assigning to a string
-- value: false
-- value: "X"
local ok = pcall(function() ("").upper = function() return "hacked" end end)
return ok, ("x"):upper()
