-- error: runtime
-- line: 7
-- message: attempt to compare number with null
-- hint: one side of the comparison is JSON's null: test it first with ~= null

local item = json.decode('{"price": null}')
return item.price > 5
