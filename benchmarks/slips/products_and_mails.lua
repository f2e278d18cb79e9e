-- slip: as_meant, low_stock
local names = {}
for _, p in ipairs(tools.search_products{query = "lamp"}.items) do
  if p.stock < 5 then names[#names + 1] = p.name end
end
table.sort(names)
return names
-- slip: page_as_list, low_stock
local names = {}
for _, p in ipairs(tools.search_products{query = "lamp"}) do
  if p.stock < 5 then table.insert(names, p.name) end
end
table.sort(names)
return names
-- slip: results_field, low_stock
local page = tools.search_products{query = "lamp"}
local names = {}
for _, p in ipairs(page.results) do
  if p.stock < 5 then table.insert(names, p.name) end
end
table.sort(names)
return names
-- slip: results_or_empty, low_stock
local page = tools.search_products{query = "lamp"}
local names = {}
for _, p in ipairs(page.results or {}) do
  if p.stock < 5 then table.insert(names, p.name) end
end
table.sort(names)
return names
-- slip: data_items, low_stock
local page = tools.search_products{query = "lamp"}
local names = {}
for _, p in ipairs(page.data.items) do
  if p.stock < 5 then table.insert(names, p.name) end
end
table.sort(names)
return names
-- slip: title_for_name, low_stock
local names = {}
for _, p in ipairs(tools.search_products{query = "lamp"}.items) do
  if p.stock < 5 then table.insert(names, p.title) end
end
table.sort(names)
return names
-- slip: quantity_for_stock, low_stock
local names = {}
for _, p in ipairs(tools.search_products{query = "lamp"}.items) do
  if (p.quantity or 0) < 5 then table.insert(names, p.name) end
end
table.sort(names)
return names
-- slip: stock_as_text, low_stock
local names = {}
for _, p in ipairs(tools.search_products{query = "lamp"}.items) do
  if p.stock < "5" then table.insert(names, p.name) end
end
table.sort(names)
return names
-- slip: stock_level_nested, low_stock
local names = {}
for _, p in ipairs(tools.search_products{query = "lamp"}.items) do
  if p.stock.available < 5 then table.insert(names, p.name) end
end
table.sort(names)
return names
-- slip: q_for_query, low_stock
local names = {}
for _, p in ipairs(tools.search_products{q = "lamp"}.items) do
  if p.stock < 5 then table.insert(names, p.name) end
end
table.sort(names)
return names
-- slip: surplus_argument, low_stock
local names = {}
for _, p in ipairs(tools.search_products{query = "lamp", max_stock = 5}.items) do
  table.insert(names, p.name)
end
table.sort(names)
return names
-- slip: limit_as_text, low_stock
local names = {}
for _, p in ipairs(tools.search_products{query = "lamp", limit = "100"}.items) do
  if p.stock < 5 then table.insert(names, p.name) end
end
table.sort(names)
return names
-- slip: limit_float, low_stock
local names = {}
for _, p in ipairs(tools.search_products{query = "lamp", limit = 100.0}.items) do
  if p.stock < 5 then table.insert(names, p.name) end
end
table.sort(names)
return names
-- slip: no_query, low_stock
local names = {}
for _, p in ipairs(tools.search_products{}.items) do
  if p.stock < 5 then table.insert(names, p.name) end
end
table.sort(names)
return names
-- slip: positional, low_stock
local names = {}
for _, p in ipairs(tools.search_products("lamp").items) do
  if p.stock < 5 then table.insert(names, p.name) end
end
table.sort(names)
return names
-- slip: json_syntax, low_stock
local page = tools.search_products({"query": "lamp"})
return page.items
-- slip: colon_fields, low_stock
local page = tools.search_products{query: "lamp"}
return page.items
-- slip: returns_sort, low_stock
local names = {}
for _, p in ipairs(tools.search_products{query = "lamp"}.items) do
  if p.stock < 5 then table.insert(names, p.name) end
end
return table.sort(names)
-- slip: push_method, low_stock
local names = {}
for _, p in ipairs(tools.search_products{query = "lamp"}.items) do
  if p.stock < 5 then names:push(p.name) end
end
table.sort(names)
return names
-- slip: append_method, low_stock
local names = {}
for _, p in ipairs(tools.search_products{query = "lamp"}.items) do
  if p.stock < 5 then names.append(p.name) end
end
table.sort(names)
return names
-- slip: insert_returns, low_stock
local names = {}
for _, p in ipairs(tools.search_products{query = "lamp"}.items) do
  if p.stock < 5 then names = table.insert(names, p.name) end
end
table.sort(names)
return names
-- slip: insert_bare, low_stock
local names = {}
for _, p in ipairs(tools.search_products{query = "lamp"}.items) do
  if p.stock < 5 then insert(names, p.name) end
end
table.sort(names)
return names
-- slip: index_zero_insert, low_stock
local names, n = {}, 0
for _, p in ipairs(tools.search_products{query = "lamp"}.items) do
  if p.stock < 5 then names[n] = p.name n = n + 1 end
end
return names
-- slip: comprehension, low_stock
return [p.name for p in tools.search_products{query = "lamp"}.items if p.stock < 5]
-- slip: filter_map, low_stock
return tools.search_products{query = "lamp"}.items
  :filter(function(p) return p.stock < 5 end)
  :map(function(p) return p.name end)
-- slip: loop_over_total, low_stock
local page = tools.search_products{query = "lamp"}
local names = {}
for i = 1, page.total do
  if page.items[i].stock < 5 then names[#names + 1] = page.items[i].name end
end
table.sort(names)
return names
-- slip: loop_over_count, low_stock
local page = tools.search_products{query = "lamp"}
local names = {}
for i = 1, page.count do
  if page.items[i].stock < 5 then names[#names + 1] = page.items[i].name end
end
table.sort(names)
return names
-- slip: indexes_the_page, low_stock
local page = tools.search_products{query = "lamp"}
local names = {}
for i = 1, #page do
  if page[i].stock < 5 then names[#names + 1] = page[i].name end
end
table.sort(names)
return names
-- slip: pages_until_empty, low_stock
local names = {}
local page = tools.search_products{query = "lamp", limit = 2, offset = 0}
return names
-- slip: tool_indexed, low_stock
local names = {}
for _, p in ipairs(tools.search_products.items) do
  if p.stock < 5 then names[#names + 1] = p.name end
end
return names
-- slip: as_meant, mail_open
local n = 0
for _, o in ipairs(tools.list_orders{status = "open"}) do
  local c = tools.get_customer{customer_id = o.customer_id}
  tools.send_mail{to = c.email, subject = "Your order", body = "Order " .. o.id}
  n = n + 1
end
return n
-- slip: checks_accepted, mail_open
local n = 0
for _, o in ipairs(tools.list_orders{status = "open"}) do
  local c = tools.get_customer{customer_id = o.customer_id}
  local sent = tools.send_mail{to = c.email, subject = "Your order", body = "Order " .. o.id}
  if sent.accepted then n = n + 1 end
end
return n
-- slip: checks_ok, mail_open
local n = 0
for _, o in ipairs(tools.list_orders{status = "open"}) do
  local c = tools.get_customer{customer_id = o.customer_id}
  local sent = tools.send_mail{to = c.email, subject = "Your order", body = "Order " .. o.id}
  if sent.ok then n = n + 1 end
end
return n
-- slip: checks_success, mail_open
local n = 0
for _, o in ipairs(tools.list_orders{status = "open"}) do
  local c = tools.get_customer{customer_id = o.customer_id}
  if tools.send_mail{to = c.email, subject = "Your order", body = "Order " .. o.id}.success then n = n + 1 end
end
return n
-- slip: checks_status_text, mail_open
local n = 0
for _, o in ipairs(tools.list_orders{status = "open"}) do
  local c = tools.get_customer{customer_id = o.customer_id}
  local sent = tools.send_mail{to = c.email, subject = "Your order", body = "Order " .. o.id}
  if sent.accepted == "yes" then n = n + 1 end
end
return n
-- slip: id_for_customer_id, mail_open
local n = 0
for _, o in ipairs(tools.list_orders{status = "open"}) do
  local c = tools.get_customer{id = o.customer_id}
  tools.send_mail{to = c.email, subject = "Your order", body = "Order " .. o.id}
  n = n + 1
end
return n
-- slip: mail_address_field, mail_open
local n = 0
for _, o in ipairs(tools.list_orders{status = "open"}) do
  local c = tools.get_customer{customer_id = o.customer_id}
  tools.send_mail{to = c.mail, subject = "Your order", body = "Order " .. o.id}
  n = n + 1
end
return n
-- slip: message_for_body, mail_open
local n = 0
for _, o in ipairs(tools.list_orders{status = "open"}) do
  local c = tools.get_customer{customer_id = o.customer_id}
  tools.send_mail{to = c.email, subject = "Your order", message = "Order " .. o.id}
  n = n + 1
end
return n
-- slip: no_subject, mail_open
local n = 0
for _, o in ipairs(tools.list_orders{status = "open"}) do
  local c = tools.get_customer{customer_id = o.customer_id}
  tools.send_mail{to = c.email, body = "Order " .. o.id}
  n = n + 1
end
return n
-- slip: wrong_at_the_end, mail_open
local n = 0
for _, o in ipairs(tools.list_orders{status = "open"}) do
  local c = tools.get_customer{customer_id = o.customer_id}
  tools.send_mail{to = c.email, subject = "Your order", body = "Order " .. o.id}
  n = n + 1
end
tools.log_result{count = n}
return n
-- slip: wrong_field_at_the_end, mail_open
local mails = {}
for _, o in ipairs(tools.list_orders{status = "open"}) do
  local c = tools.get_customer{customer_id = o.customer_id}
  mails[#mails + 1] = tools.send_mail{to = c.email, subject = "Your order", body = "Order " .. o.id}
end
local n = 0
for _, m in ipairs(mails) do if m.status == "sent" then n = n + 1 end end
return n
-- slip: order_number_field, mail_open
local n = 0
for _, o in ipairs(tools.list_orders{status = "open"}) do
  local c = tools.get_customer{customer_id = o.customer_id}
  tools.send_mail{to = c.email, subject = "Your order", body = "Order " .. o.number}
  n = n + 1
end
return n
-- slip: joins_a_table, mail_open
local n = 0
for _, o in ipairs(tools.list_orders{status = "open"}) do
  local c = tools.get_customer{customer_id = o.customer_id}
  tools.send_mail{to = c.email, subject = "Your order", body = "Lines: " .. o.lines}
  n = n + 1
end
return n
-- slip: f_string, mail_open
local n = 0
for _, o in ipairs(tools.list_orders{status = "open"}) do
  local c = tools.get_customer{customer_id = o.customer_id}
  tools.send_mail{to = c.email, subject = "Your order", body = f"Order {o.id}"}
  n = n + 1
end
return n
-- slip: customer_nested, mail_open
local n = 0
for _, o in ipairs(tools.list_orders{status = "open"}) do
  tools.send_mail{to = o.customer.email, subject = "Your order", body = "Order " .. o.id}
  n = n + 1
end
return n
-- slip: parallel_as_meant, mail_open
local orders = tools.list_orders{status = "open"}
local sent = parallel.map(orders, function(o)
  local c = tools.get_customer{customer_id = o.customer_id}
  return tools.send_mail{to = c.email, subject = "Your order", body = "Order " .. o.id}
end)
return #sent
-- slip: parallel_wrong_field, mail_open
local orders = tools.list_orders{status = "open"}
local sent = parallel.map(orders, function(o)
  local c = tools.get_customer{customer_id = o.customer_id}
  return tools.send_mail{to = c.email, subject = "Your order", body = "Order " .. o.id}
end)
local n = 0
for _, m in ipairs(sent) do if m.sent then n = n + 1 end end
return n
-- slip: settle_as_meant, mail_open
local jobs = {}
for _, o in ipairs(tools.list_orders{status = "open"}) do
  jobs[#jobs + 1] = function()
    local c = tools.get_customer{customer_id = o.customer_id}
    return tools.send_mail{to = c.email, subject = "Your order", body = "Order " .. o.id}
  end
end
local n = 0
for _, r in ipairs(parallel.settle(jobs)) do if r.ok then n = n + 1 end end
return n
-- slip: mailer_tool, mail_open
local n = 0
for _, o in ipairs(tools.list_orders{status = "open"}) do
  local c = tools.get_customer{customer_id = o.customer_id}
  tools.send_email{to = c.email, subject = "Your order", body = "Order " .. o.id}
  n = n + 1
end
return n
-- slip: recipients_list, mail_open
local n = 0
for _, o in ipairs(tools.list_orders{status = "open"}) do
  local c = tools.get_customer{customer_id = o.customer_id}
  tools.send_mail{to = {"ada@example.com"}, subject = "Your order", body = "Order " .. o.id}
  n = n + 1
end
return n
-- slip: as_meant, close_paid
local ids = {}
for _, o in ipairs(tools.list_orders{status = "paid"}) do
  ids[#ids + 1] = tools.set_status{order_id = o.id, status = "closed"}.id
end
return ids
-- slip: done_status, close_paid
local ids = {}
for _, o in ipairs(tools.list_orders{status = "paid"}) do
  tools.set_status{order_id = o.id, status = "done"}
  ids[#ids + 1] = o.id
end
return ids
-- slip: id_argument, close_paid
local ids = {}
for _, o in ipairs(tools.list_orders{status = "paid"}) do
  tools.set_status{id = o.id, status = "closed"}
  ids[#ids + 1] = o.id
end
return ids
-- slip: result_field, close_paid
local ids = {}
for _, o in ipairs(tools.list_orders{status = "paid"}) do
  local r = tools.set_status{order_id = o.id, status = "closed"}
  ids[#ids + 1] = r.order_id
end
return ids
-- slip: result_wrapped, close_paid
local ids = {}
for _, o in ipairs(tools.list_orders{status = "paid"}) do
  local r = tools.set_status{order_id = o.id, status = "closed"}
  ids[#ids + 1] = r.order and r.order.id
end
return ids
-- slip: order_id_from_order, close_paid
local ids = {}
for _, o in ipairs(tools.list_orders{status = "paid"}) do
  tools.set_status{order_id = o.order_id, status = "closed"}
  ids[#ids + 1] = o.id
end
return ids
-- slip: text_id, close_paid
local ids = {}
for _, o in ipairs(tools.list_orders{status = "paid"}) do
  tools.set_status{order_id = "" .. o.id, status = "closed"}
  ids[#ids + 1] = o.id
end
return ids
-- slip: positional, close_paid
local ids = {}
for _, o in ipairs(tools.list_orders{status = "paid"}) do
  tools.set_status(o.id, "closed")
  ids[#ids + 1] = o.id
end
return ids
-- slip: three_arguments, close_paid
local ids = {}
for _, o in ipairs(tools.list_orders{status = "paid"}) do
  tools.set_status(o.id, "paid", "closed")
  ids[#ids + 1] = o.id
end
return ids
-- slip: update_tool, close_paid
local ids = {}
for _, o in ipairs(tools.list_orders{status = "paid"}) do
  tools.update_order{order_id = o.id, status = "closed"}
  ids[#ids + 1] = o.id
end
return ids
-- slip: then_reports, close_paid
local ids = {}
for _, o in ipairs(tools.list_orders{status = "paid"}) do
  tools.set_status{order_id = o.id, status = "closed"}
  ids[#ids + 1] = o.id
end
print("closed " .. table.concat(ids, ", ") .. " of " .. tools.list_orders{}.count)
return ids
-- slip: joins_objects, close_paid
local orders = tools.list_orders{status = "paid"}
local ids = {}
for _, o in ipairs(orders) do
  tools.set_status{order_id = o.id, status = "closed"}
  ids[#ids + 1] = o.id
end
print(table.concat(orders, ", "))
return ids
-- slip: as_meant, vip_mails
local mails = {}
for _, c in ipairs(tools.list_customers{}) do
  for _, tag in ipairs(c.tags) do
    if tag == "vip" then mails[#mails + 1] = c.email end
  end
end
table.sort(mails)
return mails
-- slip: tags_as_text, vip_mails
local mails = {}
for _, c in ipairs(tools.list_customers{}) do
  if c.tags:find("vip") then mails[#mails + 1] = c.email end
end
table.sort(mails)
return mails
-- slip: tags_contains, vip_mails
local mails = {}
for _, c in ipairs(tools.list_customers{}) do
  if table.contains(c.tags, "vip") then mails[#mails + 1] = c.email end
end
table.sort(mails)
return mails
-- slip: tags_as_set, vip_mails
local mails = {}
for _, c in ipairs(tools.list_customers{}) do
  if c.tags.vip then mails[#mails + 1] = c.email end
end
table.sort(mails)
return mails
-- slip: tags_indexed_by_text, vip_mails
local mails = {}
for _, c in ipairs(tools.list_customers{}) do
  if c.tags["vip"] then mails[#mails + 1] = c.email end
end
table.sort(mails)
return mails
-- slip: tags_includes, vip_mails
local mails = {}
for _, c in ipairs(tools.list_customers{}) do
  if c.tags:includes("vip") then mails[#mails + 1] = c.email end
end
table.sort(mails)
return mails
-- slip: tag_equals_list, vip_mails
local mails = {}
for _, c in ipairs(tools.list_customers{}) do
  if c.tags == "vip" then mails[#mails + 1] = c.email end
end
table.sort(mails)
return mails
-- slip: in_operator, vip_mails
local mails = {}
for _, c in ipairs(tools.list_customers{}) do
  if "vip" in c.tags then mails[#mails + 1] = c.email end
end
return mails
-- slip: is_vip, vip_mails
local mails = {}
for _, c in ipairs(tools.list_customers{}) do
  if c.is_vip then mails[#mails + 1] = c.email end
end
table.sort(mails)
return mails
-- slip: first_tag_zero, vip_mails
local mails = {}
for _, c in ipairs(tools.list_customers{}) do
  if c.tags[0] == "vip" then mails[#mails + 1] = c.email end
end
table.sort(mails)
return mails
-- slip: first_tag, vip_mails
local mails = {}
for _, c in ipairs(tools.list_customers{}) do
  if c.tags[1] == "vip" then mails[#mails + 1] = c.email end
end
table.sort(mails)
return mails
-- slip: concat_tags, vip_mails
local mails = {}
for _, c in ipairs(tools.list_customers{}) do
  if table.concat(c.tags, ","):find("vip", 1, true) then mails[#mails + 1] = c.email end
end
table.sort(mails)
return mails
-- slip: contact_email, vip_mails
local mails = {}
for _, c in ipairs(tools.list_customers{}) do
  for _, tag in ipairs(c.tags) do
    if tag == "vip" then mails[#mails + 1] = c.contact.email end
  end
end
return mails
-- slip: email_address, vip_mails
local mails = {}
for _, c in ipairs(tools.list_customers{}) do
  for _, tag in ipairs(c.tags) do
    if tag == "vip" then mails[#mails + 1] = c.email_address end
  end
end
return mails
-- slip: tag_argument, vip_mails
local mails = {}
for _, c in ipairs(tools.list_customers{tag = "vip"}) do mails[#mails + 1] = c.email end
return mails
-- slip: filter_by_status, vip_mails
local mails = {}
for _, c in ipairs(tools.list_customers{}) do
  if c.status == "vip" then mails[#mails + 1] = c.email end
end
return mails
