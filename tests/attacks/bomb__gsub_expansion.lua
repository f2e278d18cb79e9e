-- attack: blow a string up with gsub
-- error: limit string
local s = ("x"):rep(100000)
return #s:gsub("x", ("y"):rep(150))
