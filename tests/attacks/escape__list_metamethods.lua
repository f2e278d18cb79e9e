-- attack: reach the prelude through metamethods, errors and yields of what list is given
-- features: metatables coroutines
-- value: [1, 2]
-- value: "yielded"
-- value: "mine"
local spy = setmetatable({}, { __index = function(_, key) return key end, __eq = function() return true end, __lt = function() return true end,
  __len = function() return 1000000000 end, __tostring = function() error("shown") end, __concat = function() return spy end })
pcall(list.map, spy, "x")
pcall(list.sort_by, { spy, spy })
pcall(list.unique, { spy, spy })
pcall(list.join, { spy })
pcall(list.group_by, { spy }, function() return spy end)
pcall(list.entries, string)
pcall(list.map, { 1 }, "__index")
local co = coroutine.wrap(function() return list.map({ 1 }, function() coroutine.yield("yielded") return 1 end) end)
local first = co()
co()
local mine = setmetatable({ message = "mine" }, {})
local _, problem = pcall(list.map, { 1 }, function() error(mine) end)
return list.map({ 1, 2 }, function(n) return n end), first, problem == mine and problem.message
