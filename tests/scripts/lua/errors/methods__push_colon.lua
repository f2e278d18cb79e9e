-- error: runtime
-- line: 7
-- message: attempt to call a nil value (method 'push')
-- hint: there is no method push; write: table.insert(order.items, {id = 1})

local order = {items = {}}
order.items:push({id = 1})
