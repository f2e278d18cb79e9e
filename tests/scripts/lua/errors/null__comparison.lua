-- error: runtime
-- line: 7
-- message: attempt to compare number with null
-- hint: item.price is JSON's null: test it first with ~= null

local item = json.decode('{"price": null}')
return item.price > 5
