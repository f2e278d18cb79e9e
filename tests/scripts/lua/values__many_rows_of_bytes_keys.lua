-- error: runtime
-- message has: has a key that is not UTF-8 text
local t = {}
for i = 1, 8 do t[i] = { ["\255"] = i } end
return t
