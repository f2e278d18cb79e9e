-- value: "HI"
local mine = {}
for k, v in pairs(string) do mine[k] = v end
mine.extra = 1
return mine.upper("hi")
