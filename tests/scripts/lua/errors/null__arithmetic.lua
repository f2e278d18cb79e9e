-- error: runtime
-- line: 7
-- message: attempt to perform arithmetic on a null value (field 'price')
-- hint: item.price is JSON null: check it first with ~= null

local item = json.decode('{"price": null}')
return item.price * 2
