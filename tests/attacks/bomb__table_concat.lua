-- attack: join many strings to one that fills the memory
-- error: limit string
local s = ("x"):rep(1000000)
local t = {}
for i = 1, 12 do t[i] = s end
return #table.concat(t)
