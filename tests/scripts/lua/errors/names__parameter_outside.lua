-- error: runtime
-- line: 10
-- message: attempt to index a nil value (global 'order')
-- hint: order is a parameter of the function on line 6 and exists only inside it

local function f(order)
  return order
end
f({})
return order.id
