-- task: revenue
return list.round(list.sum(pages(tools.list_orders, {status = "delivered"}), function(order)
  return list.sum(order.items, function(item) return item.price * item.quantity end)
end), 2)

-- task: months
return list.count_by(pages(tools.list_orders), function(order) return order.created:sub(1, 7) end)

-- task: top_customers
local spent = {}
for _, order in ipairs(pages(tools.list_orders, {status = "delivered"})) do
  for _, item in ipairs(order.items) do
    spent[order.user_id] = (spent[order.user_id] or 0) + item.price * item.quantity
  end
end
return list.map(list.take(list.sort_by(list.entries(spent), "-value"), 2), "key")

-- task: best_seller
local pieces = {}
for _, order in ipairs(pages(tools.list_orders)) do
  for _, item in ipairs(order.status ~= "cancelled" and order.items or {}) do
    pieces[item.name] = (pieces[item.name] or 0) + item.quantity
  end
end
local best = list.max_by(list.entries(pieces), "value")
return {product = best.key, pieces = best.value}

-- task: newsletter
return list.map(list.sort_by(list.filter(pages(tools.list_users), function(user)
  return user.newsletter and user.address.country == "DE"
end), "email"), "email")

-- task: sold_out
return list.map(list.sort_by(list.filter(tools.list_products(), function(product)
  return #list.filter(list.values(product.variants), "available") <= 1
end), "name"), "name")

-- task: reasons
return list.count_by(pages(tools.list_orders, {status = "cancelled"}), "cancel_reason")

-- task: busiest_city
local orders = pages(tools.list_orders, {status = "delivered"})
local best = list.max_by(list.entries(list.count_by(orders, function(order) return order.address.city end)), "value")
return {city = best.key, orders = best.value}

-- task: cheapest
local best = list.min_by(list.map(tools.list_products(), function(product)
  return list.min_by(list.filter(list.values(product.variants), "available"), "price")
end), "price")
return {item_id = best.item_id, price = best.price}

-- task: refunds
return list.round(list.sum(pages(tools.list_orders), function(order)
  return list.sum(list.filter(order.payment_history, function(p) return p.transaction_type == "refund" end), "amount")
end), 2)

-- task: countries
local worth = {}
for _, order in ipairs(pages(tools.list_orders, {status = "processed"})) do
  local total = list.sum(order.items, function(item) return item.price * item.quantity end)
  worth[order.address.country] = list.round((worth[order.address.country] or 0) + total, 2)
end
return worth

-- task: without_delivery
local delivered = list.unique(pages(tools.list_orders, {status = "delivered"}), "user_id")
return #pages(tools.list_users) - #delivered

-- task: stale
local orders = list.filter(pages(tools.list_orders, {status = "pending"}), function(order)
  return order.created < "2026-02-01"
end)
return list.map(list.sort_by(orders, "order_id"), function(order)
  return tools.cancel_order{order_id = order.order_id, reason = "no longer needed"}.order_id
end)
