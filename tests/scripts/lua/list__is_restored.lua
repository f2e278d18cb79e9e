-- value: "mine"
list = "mine"
return list
-- next run
-- value: [1]
-- value: "the table 'list' is read-only: keep 'map' in a variable of your own"
local _, problem = pcall(function() list.map = nil end)
return list.take({ 1, 2 }, 1), (problem:gsub("^.-: ", ""))
-- next run
-- error: runtime
-- line: 4
-- message: 'list' is the library here, not a list of yours: globals of that name last for one run; use another name
for _, item in ipairs(list) do print(item) end
