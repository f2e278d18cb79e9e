-- slip: as_meant, open_total
local total = 0
for _, order in ipairs(tools.list_orders{status = "open"}) do
  total = total + order.total
end
return total
-- slip: as_meant_filtered, open_total
local total = 0
for _, o in ipairs(tools.list_orders{}) do
  if o.status == "open" then total = total + o.total end
end
return total
-- slip: amount_for_total, open_total
local sum = 0
for _, order in ipairs(tools.list_orders{status = "open"}) do
  sum = sum + order.amount
end
return sum
-- slip: amount_with_default, open_total
local sum = 0
for _, order in ipairs(tools.list_orders{status = "open"}) do
  sum = sum + (order.amount or 0)
end
return sum
-- slip: capital_total, open_total
local sum = 0
for _, order in ipairs(tools.list_orders{status = "open"}) do
  sum = sum + (order.Total or 0)
end
return sum
-- slip: state_for_status, open_total
local sum = 0
for _, order in ipairs(tools.list_orders()) do
  if order.state == "open" then sum = sum + order.total end
end
return sum
-- slip: status_upper_case, open_total
local sum = 0
for _, order in ipairs(tools.list_orders{}) do
  if order.status == "OPEN" then sum = sum + order.total end
end
return sum
-- slip: status_other_word, open_total
local sum = 0
for _, order in ipairs(tools.list_orders{}) do
  if order.status == "pending" then sum = sum + order.total end
end
return sum
-- slip: status_argument_upper_case, open_total
local sum = 0
for _, order in ipairs(tools.list_orders{status = "Open"}) do
  sum = sum + order.total
end
return sum
-- slip: argument_state, open_total
local sum = 0
for _, order in ipairs(tools.list_orders{state = "open"}) do
  sum = sum + order.total
end
return sum
-- slip: wrapped_in_orders, open_total
local result = tools.list_orders{status = "open"}
local sum = 0
for _, order in ipairs(result.orders) do
  sum = sum + order.total
end
return sum
-- slip: wrapped_in_data_or, open_total
local result = tools.list_orders{status = "open"}
local orders = result.data or result.items or result
local sum = 0
for _, order in ipairs(orders) do
  sum = sum + order.total
end
return sum
-- slip: decoded_again, open_total
local orders = json.decode(tools.list_orders{status = "open"})
local sum = 0
for _, order in ipairs(orders) do sum = sum + order.total end
return sum
-- slip: loop_without_ipairs, open_total
local sum = 0
for _, order in tools.list_orders{status = "open"} do
  sum = sum + order.total
end
return sum
-- slip: loop_in_list, open_total
local orders = tools.list_orders{status = "open"}
local sum = 0
for order in orders do
  sum = sum + order.total
end
return sum
-- slip: one_loop_variable, open_total
local orders = tools.list_orders{status = "open"}
local sum = 0
for order in ipairs(orders) do
  sum = sum + order.total
end
return sum
-- slip: one_loop_variable_pairs, open_total
local orders = tools.list_orders{status = "open"}
local sum = 0
for order in pairs(orders) do
  sum = sum + order.total
end
return sum
-- slip: from_zero, open_total
local orders = tools.list_orders{status = "open"}
local sum = 0
for i = 0, #orders - 1 do
  sum = sum + orders[i].total
end
return sum
-- slip: from_zero_guarded, open_total
local orders = tools.list_orders{status = "open"}
local sum = 0
for i = 0, #orders do
  if orders[i] then sum = sum + orders[i].total end
end
return sum
-- slip: length_property, open_total
local orders = tools.list_orders{status = "open"}
local sum = 0
for i = 1, orders.length do
  sum = sum + orders[i].total
end
return sum
-- slip: len_function, open_total
local orders = tools.list_orders{status = "open"}
local sum = 0
for i = 1, len(orders) do
  sum = sum + orders[i].total
end
return sum
-- slip: local_in_loop, open_total
local sum = 0
for _, order in ipairs(tools.list_orders{status = "open"}) do
  local sum = sum + order.total
end
return sum
-- slip: plus_equals, open_total
local sum = 0
for _, order in ipairs(tools.list_orders{status = "open"}) do
  sum += order.total
end
return sum
-- slip: python_for, open_total
total = 0
for order in tools.list_orders(status="open"):
    total += order["total"]
return total
-- slip: javascript_reduce, open_total
const orders = await tools.list_orders({ status: "open" });
return orders.reduce((sum, order) => sum + order.total, 0);
-- slip: reduce_method, open_total
local orders = tools.list_orders{status = "open"}
return orders:reduce(function(sum, order) return sum + order.total end, 0)
-- slip: sum_function, open_total
local totals = {}
for _, order in ipairs(tools.list_orders{status = "open"}) do table.insert(totals, order.total) end
return sum(totals)
-- slip: table_sum, open_total
local totals = {}
for _, order in ipairs(tools.list_orders{status = "open"}) do table.insert(totals, order.total) end
return table.sum(totals)
-- slip: no_return, open_total
local total = 0
for _, order in ipairs(tools.list_orders{status = "open"}) do total = total + order.total end
total
-- slip: misspelled_tool, open_total
local total = 0
for _, order in ipairs(tools.get_orders{status = "open"}) do total = total + order.total end
return total
-- slip: camel_case_tool, open_total
local total = 0
for _, order in ipairs(tools.listOrders{status = "open"}) do total = total + order.total end
return total
-- slip: tool_without_tools, open_total
local total = 0
for _, order in ipairs(list_orders{status = "open"}) do total = total + order.total end
return total
-- slip: namespace_invented, open_total
local total = 0
for _, order in ipairs(tools.shop.list_orders{status = "open"}) do total = total + order.total end
return total
-- slip: colon_call, open_total
local total = 0
for _, order in ipairs(tools:list_orders{status = "open"}) do total = total + order.total end
return total
-- slip: not_called, open_total
local total = 0
for _, order in ipairs(tools.list_orders) do total = total + order.total end
return total
-- slip: positional_status, open_total
local total = 0
for _, order in ipairs(tools.list_orders("open")) do total = total + order.total end
return total
-- slip: string_join_plus, open_total
local total = 0
for _, order in ipairs(tools.list_orders{status = "open"}) do total = total + order.total end
print("total: " + total)
return total
-- slip: undefined_accumulator, open_total
for _, order in ipairs(tools.list_orders{status = "open"}) do
  total = total + order.total
end
return total
-- slip: global_accumulator, open_total
total = 0
for _, order in ipairs(tools.list_orders{status = "open"}) do
  total = total + order.total
end
return total
-- slip: misspelled_local, open_total
local total = 0
for _, order in ipairs(tools.list_orders{status = "open"}) do
  total = total + order.total
end
return totl
-- slip: not_equals_precedence, open_total
local total = 0
for _, order in ipairs(tools.list_orders{}) do
  if not order.status == "open" then goto continue end
  if order.status ~= "open" then goto continue end
  total = total + order.total
  ::continue::
end
return total
-- slip: bang_equals, open_total
local total = 0
for _, order in ipairs(tools.list_orders{}) do
  if order.status != "open" then goto continue end
  total = total + order.total
  ::continue::
end
return total
-- slip: continue_word, open_total
local total = 0
for _, order in ipairs(tools.list_orders{}) do
  if order.status ~= "open" then continue end
  total = total + order.total
end
return total
-- slip: computed_from_lines, open_total
local total = 0
for _, order in ipairs(tools.list_orders{status = "open"}) do
  for _, line in ipairs(order.lines) do
    total = total + line.quantity * line.price
  end
end
return total
-- slip: computed_from_items, open_total
local total = 0
for _, order in ipairs(tools.list_orders{status = "open"}) do
  for _, line in ipairs(order.items) do
    total = total + line.quantity * line.price
  end
end
return total
-- slip: computed_from_qty, open_total
local total = 0
for _, order in ipairs(tools.list_orders{status = "open"}) do
  for _, line in ipairs(order.lines) do
    total = total + (line.qty or 1) * (line.price or 0)
  end
end
return total
-- slip: as_meant, open_count
return #tools.list_orders{status = "open"}
-- slip: length_field, open_count
return tools.list_orders{status = "open"}.length
-- slip: len_call, open_count
local orders = tools.list_orders{status = "open"}
return len(orders)
-- slip: table_getn, open_count
return table.getn(tools.list_orders{status = "open"})
-- slip: count_field, open_count
local result = tools.list_orders{status = "open"}
return result.count
-- slip: total_count_field, open_count
local result = tools.list_orders{status = "open"}
return result.total or #result
-- slip: filter_method, open_count
local open = tools.list_orders{}:filter(function(o) return o.status == "open" end)
return #open
-- slip: is_open_flag, open_count
local n = 0
for _, o in ipairs(tools.list_orders{}) do
  if o.is_open then n = n + 1 end
end
return n
-- slip: not_paid, open_count
local n = 0
for _, o in ipairs(tools.list_orders{}) do
  if not o.paid then n = n + 1 end
end
return n
-- slip: single_equals, open_count
local n = 0
for _, o in ipairs(tools.list_orders{}) do
  if o.status = "open" then n = n + 1 end
end
return n
-- slip: count_by_status, open_count
local counts = {}
for _, o in ipairs(tools.list_orders{}) do
  counts[o.status] = (counts[o.status] or 0) + 1
end
return counts.open
-- slip: count_by_state, open_count
local counts = {}
for _, o in ipairs(tools.list_orders{}) do
  local key = o.state or "unknown"
  counts[key] = (counts[key] or 0) + 1
end
return counts.open or 0
-- slip: condition_on_length, open_count
local orders = tools.list_orders{status = "open"}
if #orders then return #orders end
return 0
-- slip: ternary, open_count
local orders = tools.list_orders{status = "open"}
return orders ? #orders : 0
-- slip: while_zero_based, open_count
local orders = tools.list_orders{}
local i, n = 0, 0
while i < #orders do
  if orders[i].status == "open" then n = n + 1 end
  i = i + 1
end
return n
-- slip: json_text, open_count
local orders = tools.list_orders{}
local n = 0
for _ in orders:gmatch('"open"') do n = n + 1 end
return n
-- slip: type_array, open_count
local orders = tools.list_orders{status = "open"}
if type(orders) == "array" then return #orders end
return 0
-- slip: parallel_two_values, open_count
local open, paid = parallel{
  function() return tools.list_orders{status = "open"} end,
  function() return tools.list_orders{status = "paid"} end,
}
return #open
-- slip: parallel_as_meant, open_count
local r = parallel{
  function() return tools.list_orders{status = "open"} end,
  function() return tools.list_orders{status = "paid"} end,
}
return #r[1]
-- slip: parallel_called, open_count
local r = parallel{ tools.list_orders{status = "open"}, tools.list_orders{status = "paid"} }
return #r[1]
-- slip: parallel_all, open_count
local r = parallel.all({
  function() return tools.list_orders{status = "open"} end,
})
return #r[1]
-- slip: promise_all, open_count
local r = Promise.all({ tools.list_orders{status = "open"} })
return #r[1]
-- slip: parallel_arguments, open_count
local r = parallel(function() return tools.list_orders{status = "open"} end, function() return tools.list_orders{status = "paid"} end)
return #r[1]
-- slip: parallel_zero_based, open_count
local r = parallel{
  function() return tools.list_orders{status = "open"} end,
}
return #r[0]
-- slip: pcall_as_meant, open_count
local ok, orders = pcall(tools.list_orders, {status = "open"})
if not ok then return 0 end
return #orders
-- slip: pcall_of_result, open_count
local ok, orders = pcall(tools.list_orders{status = "open"})
if not ok then return 0 end
return #orders
-- slip: ok_without_pcall, open_count
local ok, orders = tools.list_orders{status = "open"}
if ok and orders then return #orders end
return 0
-- slip: data_err, open_count
local orders, err = tools.list_orders{status = "open"}
if err then return 0 end
return #orders
-- slip: try_catch, open_count
try {
  return #tools.list_orders{status = "open"}
} catch (e) {
  return 0
}
-- slip: as_meant, biggest
local best
for _, o in ipairs(tools.list_orders{}) do
  if not best or o.total > best.total then best = o end
end
return best.id
-- slip: sorted_as_meant, biggest
local orders = tools.list_orders{}
table.sort(orders, function(a, b) return a.total > b.total end)
return orders[1].id
-- slip: sort_returns, biggest
local orders = table.sort(tools.list_orders{}, function(a, b) return a.total > b.total end)
return orders[1].id
-- slip: sort_first_is_zero, biggest
local orders = tools.list_orders{}
table.sort(orders, function(a, b) return a.total > b.total end)
return orders[0].id
-- slip: sort_by_amount, biggest
local orders = tools.list_orders{}
table.sort(orders, function(a, b) return (a.amount or 0) > (b.amount or 0) end)
return orders[1].id
-- slip: sort_greater_equal, biggest
local orders = tools.list_orders{}
table.sort(orders, function(a, b) return a.total >= b.total end)
return orders[1].id
-- slip: sort_by_key, biggest
local orders = tools.list_orders{}
table.sort(orders, "total")
return orders[#orders].id
-- slip: sorted_python, biggest
local orders = sorted(tools.list_orders{}, function(o) return o.total end)
return orders[#orders].id
-- slip: math_max_list, biggest
local totals = {}
for _, o in ipairs(tools.list_orders{}) do totals[#totals + 1] = o.total end
local most = math.max(totals)
for _, o in ipairs(tools.list_orders{}) do if o.total == most then return o.id end end
-- slip: math_max_unpack, biggest
local totals = {}
for _, o in ipairs(tools.list_orders{}) do totals[#totals + 1] = o.total end
local most = math.max(table.unpack(totals))
for _, o in ipairs(tools.list_orders{}) do if o.total == most then return o.id end end
-- slip: max_function, biggest
local totals = {}
for _, o in ipairs(tools.list_orders{}) do totals[#totals + 1] = o.total end
local most = max(totals)
for _, o in ipairs(tools.list_orders{}) do if o.total == most then return o.id end end
-- slip: last_negative, biggest
local orders = tools.list_orders{}
table.sort(orders, function(a, b) return a.total < b.total end)
return orders[-1].id
-- slip: order_id_field, biggest
local best
for _, o in ipairs(tools.list_orders{}) do
  if not best or o.total > best.total then best = o end
end
return best.order_id
-- slip: compares_text, biggest
local best
for _, o in ipairs(tools.list_orders{}) do
  if not best or o.status > best.total then best = o end
end
return best.id
-- slip: table_max, biggest
return table.max(tools.list_orders{}, "total").id
-- slip: as_meant, paid_pieces
local n = 0
for _, o in ipairs(tools.list_orders{status = "paid"}) do
  for _, line in ipairs(o.lines) do n = n + line.quantity end
end
return n
-- slip: items_field, paid_pieces
local n = 0
for _, o in ipairs(tools.list_orders{status = "paid"}) do
  for _, item in ipairs(o.items or {}) do n = n + item.quantity end
end
return n
-- slip: qty_default, paid_pieces
local n = 0
for _, o in ipairs(tools.list_orders{status = "paid"}) do
  for _, line in ipairs(o.lines) do n = n + (line.qty or 0) end
end
return n
-- slip: counts_lines, paid_pieces, wrong
local n = 0
for _, o in ipairs(tools.list_orders{status = "paid"}) do
  n = n + #o.lines
end
return n
-- slip: quantity_of_order, paid_pieces
local n = 0
for _, o in ipairs(tools.list_orders{status = "paid"}) do
  n = n + o.lines.quantity
end
return n
-- slip: status_misspelled, paid_pieces
local n = 0
for _, o in ipairs(tools.list_orders{status = "payed"}) do
  for _, line in ipairs(o.lines) do n = n + line.quantity end
end
return n
-- slip: parallel_map, paid_pieces
local sums = parallel.map(tools.list_orders{status = "paid"}, function(o)
  local n = 0
  for _, line in ipairs(o.lines) do n = n + line.quantity end
  return n
end)
local total = 0
for _, n in ipairs(sums) do total = total + n end
return total
-- slip: parallel_map_amount, paid_pieces
local sums = parallel.map(tools.list_orders{status = "paid"}, function(o)
  return o.pieces or 0
end)
local total = 0
for _, n in ipairs(sums) do total = total + n end
return total
-- slip: as_meant, unshipped
local n = 0
for _, o in ipairs(tools.list_orders{}) do
  if o.shipped_at == nil then n = n + 1 end
end
return n
-- slip: not_shipped, unshipped
local n = 0
for _, o in ipairs(tools.list_orders{}) do
  if not o.shipped_at then n = n + 1 end
end
return n
-- slip: equals_null, unshipped
local n = 0
for _, o in ipairs(tools.list_orders{}) do
  if o.shipped_at == null then n = n + 1 end
end
return n
-- slip: equals_json_null, unshipped
local n = 0
for _, o in ipairs(tools.list_orders{}) do
  if o.shipped_at == nil or o.shipped_at == json.null then n = n + 1 end
end
return n
-- slip: counts_shipped, unshipped
local orders = tools.list_orders{}
local shipped = 0
for _, o in ipairs(orders) do
  if o.shipped_at then shipped = shipped + 1 end
end
return #orders - shipped
-- slip: equals_none, unshipped
local n = 0
for _, o in ipairs(tools.list_orders{}) do
  if o.shipped_at == None then n = n + 1 end
end
return n
-- slip: equals_undefined, unshipped
local n = 0
for _, o in ipairs(tools.list_orders{}) do
  if o.shipped_at == undefined then n = n + 1 end
end
return n
-- slip: shipped_flag, unshipped
local n = 0
for _, o in ipairs(tools.list_orders{}) do
  if o.shipped == false then n = n + 1 end
end
return n
-- slip: not_shipped_flag, unshipped
local n = 0
for _, o in ipairs(tools.list_orders{}) do
  if not o.shipped then n = n + 1 end
end
return n
-- slip: shipped_false, unshipped
local n = 0
for _, o in ipairs(tools.list_orders{}) do
  if o.shipped_at == false then n = n + 1 end
end
return n
-- slip: unshipped_status, unshipped
return #tools.list_orders{status = "unshipped"}
-- slip: empty_text, unshipped
local n = 0
for _, o in ipairs(tools.list_orders{}) do
  if o.shipped_at == nil or o.shipped_at == "" then n = n + 1 end
end
return n
-- slip: length_of_date, unshipped
local n = 0
for _, o in ipairs(tools.list_orders{}) do
  if #(o.shipped_at or "") == 0 then n = n + 1 end
end
return n
-- slip: type_null, unshipped
local n = 0
for _, o in ipairs(tools.list_orders{}) do
  if type(o.shipped_at) == "null" then n = n + 1 end
end
return n
-- slip: type_nil, unshipped
local n = 0
for _, o in ipairs(tools.list_orders{}) do
  if type(o.shipped_at) == "nil" then n = n + 1 end
end
return n
