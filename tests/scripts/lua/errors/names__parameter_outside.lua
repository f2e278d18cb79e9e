-- error: runtime
-- line: 10
-- message: attempt to index a nil value (global 'order')
-- hint: order is known only inside the function of line 6, whose parameter it is

local function f(order)
  return order
end
f({})
return order.id
