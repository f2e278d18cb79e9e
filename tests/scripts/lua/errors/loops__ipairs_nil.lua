-- error: runtime
-- line: 7
-- message: bad argument #1 to 'ipairs' (table expected, got nil)
-- hint: order.items is nil, but ipairs needs a table there: check it first

local order = {}
for _, item in ipairs(order.items) do print(item) end
