-- error: runtime
-- line: 7
-- message: attempt to index a nil value
-- hint: ipairs needs a list, but order.items is nil

local order = {}
for _, item in ipairs(order.items) do print(item) end
