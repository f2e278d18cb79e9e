-- error: runtime
-- line: 7
-- message: attempt to index a nil value (field 'customer')
-- hint: order.customer is nil; check it before using its fields: if order.customer then … end

local order = json.decode('{"customer": null}')
return order.customer.name
