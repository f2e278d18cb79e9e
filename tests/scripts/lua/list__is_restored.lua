-- value: "mine"
list = "mine"
return list
-- next run
-- value: [1]
-- value: "the table 'list' is read-only: keep 'map' in a variable of your own"
local _, problem = pcall(function() list.map = nil end)
return list.take({ 1, 2 }, 1), (problem:gsub("^.-: ", ""))
