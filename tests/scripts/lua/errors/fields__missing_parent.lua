-- error: runtime
-- line: 7
-- message: attempt to index a nil value (field 'customer')
-- hint: order.customer is nil; check it before using its fields: if order.customer then … end

local order = {}
return order.customer.name
