-- attack: hold many strings of the largest allowed size
-- error: limit memory
local t = {}
for i = 1, 100 do t[i] = ("x"):rep(9999990) .. i end
