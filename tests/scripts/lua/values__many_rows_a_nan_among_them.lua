-- error: runtime
-- message has: value[7].f is NaN
local t = {}
for i = 1, 9 do t[i] = { f = i } end
t[7].f = 0 / 0
return t
