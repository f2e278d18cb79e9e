-- features: coroutines metatables
-- value: "close create isyieldable resume running status wrap yield"
-- value: "function"
-- value: "function"
local names = {}
for name in pairs(coroutine) do names[#names + 1] = name end
table.sort(names)
return table.concat(names, " "), type(setmetatable), type(getmetatable)
