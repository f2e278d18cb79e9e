-- attack: raise an error with a table of many megabytes
-- error: runtime
local t = { message = ("x"):rep(9000000) }
for i = 1, 50000 do t[i] = "some text " .. i end
error(t)
