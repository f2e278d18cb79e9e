-- error: runtime
-- line: 7
-- message: attempt to index a null value (field 'name')
-- hint: order.customer is json.null, which has no fields: it is only for sending a null

local order = { customer = json.null }
return order.customer.name
