-- error: runtime
-- line: 7
-- message: attempt to compare number with nil
-- hint: item.price is nil; where it may be missing write: (item.price or 0)

local item = json.decode('{"price": null}')
return item.price > 5
