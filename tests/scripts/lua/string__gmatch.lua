-- value: ["one", "two", "three"]
local t = {}
for w in ("one two three"):gmatch("%a+") do t[#t + 1] = w end
return t
