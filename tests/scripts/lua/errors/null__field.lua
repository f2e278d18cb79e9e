-- error: runtime
-- line: 7
-- message: attempt to index a null value (field 'name')
-- hint: order.customer is JSON null, which has no fields; check it first: if order.customer ~= null then … end

local order = json.decode('{"customer": null}')
return order.customer.name
