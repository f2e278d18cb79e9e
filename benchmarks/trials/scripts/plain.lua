-- task: revenue
local total, page = 0, 1
while page do
  local answer = tools.list_orders{status = "delivered", page = page}
  for _, order in ipairs(answer.orders) do
    for _, item in ipairs(order.items) do
      total = total + item.price * item.quantity
    end
  end
  page = answer.next_page
end
return math.floor(total * 100 + 0.5) / 100

-- task: months
local counts, page = {}, 1
while page do
  local answer = tools.list_orders{page = page}
  for _, order in ipairs(answer.orders) do
    local month = order.created:sub(1, 7)
    counts[month] = (counts[month] or 0) + 1
  end
  page = answer.next_page
end
return counts

-- task: top_customers
local spent, page = {}, 1
while page do
  local answer = tools.list_orders{status = "delivered", page = page}
  for _, order in ipairs(answer.orders) do
    for _, item in ipairs(order.items) do
      spent[order.user_id] = (spent[order.user_id] or 0) + item.price * item.quantity
    end
  end
  page = answer.next_page
end
local ids = {}
for id in pairs(spent) do
  ids[#ids + 1] = id
end
table.sort(ids, function(a, b) return spent[a] > spent[b] end)
return {ids[1], ids[2]}

-- task: best_seller
local pieces, page = {}, 1
while page do
  local answer = tools.list_orders{page = page}
  for _, order in ipairs(answer.orders) do
    if order.status ~= "cancelled" then
      for _, item in ipairs(order.items) do
        pieces[item.name] = (pieces[item.name] or 0) + item.quantity
      end
    end
  end
  page = answer.next_page
end
local best
for name, count in pairs(pieces) do
  if not best or count > pieces[best] then best = name end
end
return {product = best, pieces = pieces[best]}

-- task: newsletter
local emails, page = {}, 1
while true do
  local users = tools.list_users{page = page}
  for _, user in ipairs(users) do
    if user.newsletter and user.address.country == "DE" then
      emails[#emails + 1] = user.email
    end
  end
  if #users == 0 then break end
  page = page + 1
end
table.sort(emails)
return emails

-- task: sold_out
local names = {}
for _, product in ipairs(tools.list_products()) do
  local available = 0
  for _, variant in pairs(product.variants) do
    if variant.available then available = available + 1 end
  end
  if available <= 1 then names[#names + 1] = product.name end
end
table.sort(names)
return names

-- task: reasons
local counts, page = {}, 1
while page do
  local answer = tools.list_orders{status = "cancelled", page = page}
  for _, order in ipairs(answer.orders) do
    counts[order.cancel_reason] = (counts[order.cancel_reason] or 0) + 1
  end
  page = answer.next_page
end
return counts

-- task: busiest_city
local counts, page = {}, 1
while page do
  local answer = tools.list_orders{status = "delivered", page = page}
  for _, order in ipairs(answer.orders) do
    local city = order.address.city
    counts[city] = (counts[city] or 0) + 1
  end
  page = answer.next_page
end
local best
for city, count in pairs(counts) do
  if not best or count > counts[best] then best = city end
end
return {city = best, orders = counts[best]}

-- task: cheapest
local best
for _, product in ipairs(tools.list_products()) do
  for _, variant in pairs(product.variants) do
    if variant.available and (not best or variant.price < best.price) then
      best = variant
    end
  end
end
return {item_id = best.item_id, price = best.price}

-- task: refunds
local total, page = 0, 1
while page do
  local answer = tools.list_orders{page = page}
  for _, order in ipairs(answer.orders) do
    for _, payment in ipairs(order.payment_history) do
      if payment.transaction_type == "refund" then total = total + payment.amount end
    end
  end
  page = answer.next_page
end
return math.floor(total * 100 + 0.5) / 100

-- task: countries
local worth, page = {}, 1
while page do
  local answer = tools.list_orders{status = "processed", page = page}
  for _, order in ipairs(answer.orders) do
    local country = order.address.country
    for _, item in ipairs(order.items) do
      worth[country] = (worth[country] or 0) + item.price * item.quantity
    end
  end
  page = answer.next_page
end
for country, total in pairs(worth) do
  worth[country] = math.floor(total * 100 + 0.5) / 100
end
return worth

-- task: without_delivery
local delivered, page = {}, 1
while page do
  local answer = tools.list_orders{status = "delivered", page = page}
  for _, order in ipairs(answer.orders) do
    delivered[order.user_id] = true
  end
  page = answer.next_page
end
local count = 0
page = 1
while true do
  local users = tools.list_users{page = page}
  for _, user in ipairs(users) do
    if not delivered[user.user_id] then count = count + 1 end
  end
  if #users == 0 then break end
  page = page + 1
end
return count

-- task: stale
local ids, page = {}, 1
while page do
  local answer = tools.list_orders{status = "pending", page = page}
  for _, order in ipairs(answer.orders) do
    if order.created < "2026-02-01" then ids[#ids + 1] = order.order_id end
  end
  page = answer.next_page
end
table.sort(ids)
for _, id in ipairs(ids) do
  tools.cancel_order{order_id = id, reason = "no longer needed"}
end
return ids
