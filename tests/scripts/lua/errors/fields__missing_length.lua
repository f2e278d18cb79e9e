-- error: runtime
-- line: 7
-- message: attempt to get length of a nil value (field 'items')
-- hint: order.items is nil, so it has no length: check it first

local order = {}
return #order.items
