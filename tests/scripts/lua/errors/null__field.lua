-- error: runtime
-- line: 7
-- message: attempt to index a null value (field 'name')
-- hint: order.customer is JSON's null, which has no fields; test it first: if order.customer ~= null then … end

local order = json.decode('{"customer": null}')
return order.customer.name
