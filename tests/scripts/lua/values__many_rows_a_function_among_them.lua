-- error: runtime
-- message has: value[5].f is a function
local t = {}
for i = 1, 9 do t[i] = { f = i } end
t[5].f = print
return t
