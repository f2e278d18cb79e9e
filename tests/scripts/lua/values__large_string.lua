-- value: 1000000
-- value: true
local s = ("abcdefghij"):rep(100000)
return #s, s:sub(-3) == "hij"
