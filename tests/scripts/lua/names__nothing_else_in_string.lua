-- value: "byte char find format gmatch gsub len lower match pack packsize rep reverse sub unpack upper"
local names = {}
for name in pairs(string) do names[#names + 1] = name end
table.sort(names)
return table.concat(names, " ")
