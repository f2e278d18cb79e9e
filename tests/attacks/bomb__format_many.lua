-- attack: blow a string up with many pieces
-- error: limit string
local s = ("x"):rep(1000000)
return #string.format(("%s"):rep(11), s, s, s, s, s, s, s, s, s, s, s)
