-- value: "add echo fail rows text"
local names = {}
for name in pairs(tools) do names[#names + 1] = name end
table.sort(names)
return table.concat(names, " ")
