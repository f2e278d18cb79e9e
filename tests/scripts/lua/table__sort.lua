-- value: [1, 2, 3]
-- value: ["c", "b", "a"]
local t = { 3, 1, 2 }
table.sort(t)
local u = { "a", "c", "b" }
table.sort(u, function(a, b) return a > b end)
return t, u
