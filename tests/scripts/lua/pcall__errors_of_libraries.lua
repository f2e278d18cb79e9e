-- features: coroutines
-- value: "bad argument #2 to 'rep' (number expected, got table)"
-- value: "bad argument #1 to 'concat' (table expected, got number)"
-- value: "bad argument #2 to 'format' (number expected, got string)"
-- value: "bad argument #1 to 'rep' (string expected, got nil)"
local _, a = pcall(string.rep, "x", {})
local _, b = xpcall(table.concat, function(e) return e end, 5)
local _, c = coroutine.resume(coroutine.create(string.format), "%d", "x")
local _, d = pcall(string.rep)
return a, b, c, d
