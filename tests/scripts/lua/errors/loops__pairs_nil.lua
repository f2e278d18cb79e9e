-- error: runtime
-- line: 7
-- message: bad argument #1 to 'pairs' (table expected, got nil)
-- hint: order.items is nil, but pairs needs a table there: check it first

local order = {}
for k, v in pairs(order.items) do print(k) end
