-- value: [3, 1]
-- calls: add
local t = { 1, 3 }
table.sort(t, function(a, b) return tools.add(a, b) > 0 and a > b end)
return t
