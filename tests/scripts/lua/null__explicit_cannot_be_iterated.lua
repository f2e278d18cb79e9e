-- error: runtime
-- message has: bad argument #1 to 'pairs' (table expected, got null)
for k in pairs(json.null) do end
