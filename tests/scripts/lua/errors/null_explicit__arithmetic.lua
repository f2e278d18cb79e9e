-- error: runtime
-- line: 7
-- message: attempt to perform arithmetic on a null value (field 'price')
-- hint: item.price is json.null, which is only for sending a null: write nil for a missing value

local item = { price = json.null }
return item.price * 2
