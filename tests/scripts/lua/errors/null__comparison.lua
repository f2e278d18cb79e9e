-- error: runtime
-- line: 7
-- message: attempt to compare number with null
-- hint: item.price is JSON null: check it first with ~= null

local item = json.decode('{"price": null}')
return item.price > 5
