-- value: "_G _VERSION array assert docs error ipairs json list math next os pages pairs parallel pcall print progress rawequal rawget rawlen rawset select show sleep sleep_until string table tonumber tools tostring type utf8 xpcall"
local names = {}
for name in pairs(_G) do names[#names + 1] = name end
table.sort(names)
return table.concat(names, " ")
