-- error: runtime
-- line: 7
-- message: attempt to perform arithmetic on a null value (field 'price')
-- hint: item.price is JSON's null: test it first with ~= null

local item = json.decode('{"price": null}')
return item.price * 2
