-- slip: as_meant, no_manager
local n = 0
for _, e in ipairs(tools.list_employees{}) do
  if e.manager == nil then n = n + 1 end
end
return n
-- slip: not_manager, no_manager
local n = 0
for _, e in ipairs(tools.list_employees{}) do
  if not e.manager then n = n + 1 end
end
return n
-- slip: counts_with_manager, no_manager
local all = tools.list_employees{}
local with = 0
for _, e in ipairs(all) do
  if e.manager then with = with + 1 end
end
return #all - with
-- slip: manager_null, no_manager
local n = 0
for _, e in ipairs(tools.list_employees{}) do
  if e.manager == null then n = n + 1 end
end
return n
-- slip: manager_not_nil, no_manager
local n = 0
for _, e in ipairs(tools.list_employees{}) do
  if e.manager ~= nil then else n = n + 1 end
end
return n
-- slip: manager_nil_or_null, no_manager
local n = 0
for _, e in ipairs(tools.list_employees{}) do
  if e.manager == nil or e.manager == null then n = n + 1 end
end
return n
-- slip: manager_none, no_manager
local n = 0
for _, e in ipairs(tools.list_employees{}) do
  if e.manager == None then n = n + 1 end
end
return n
-- slip: manager_id, no_manager
local n = 0
for _, e in ipairs(tools.list_employees{}) do
  if not e.manager_id then n = n + 1 end
end
return n
-- slip: wrapped_employees, no_manager
local n = 0
for _, e in ipairs(tools.list_employees{}.employees) do
  if not e.manager then n = n + 1 end
end
return n
-- slip: result_field, no_manager
local n = 0
for _, e in ipairs(tools.list_employees{}.result) do
  if not e.manager then n = n + 1 end
end
return n
-- slip: items_or_empty, no_manager
local n = 0
for _, e in ipairs(tools.list_employees{}.items or {}) do
  if not e.manager then n = n + 1 end
end
return n
-- slip: items_or_result, no_manager
local r = tools.list_employees{}
local n = 0
for _, e in ipairs(r.items or r) do
  if not e.manager then n = n + 1 end
end
return n
-- slip: decoded, no_manager
local n = 0
for _, e in ipairs(json.decode(tools.list_employees{})) do
  if not e.manager then n = n + 1 end
end
return n
-- slip: length_property, no_manager
local r = tools.list_employees{}
local n = 0
for i = 1, r.length do
  if not r[i].manager then n = n + 1 end
end
return n
-- slip: zero_based, no_manager
local r = tools.list_employees{}
local n = 0
for i = 0, #r - 1 do
  if not r[i].manager then n = n + 1 end
end
return n
-- slip: zero_based_safe, no_manager
local r = tools.list_employees{}
local n = 0
for i = 0, #r - 1 do
  local e = r[i] or {}
  if not e.manager then n = n + 1 end
end
return n
-- slip: no_ipairs, no_manager
local n = 0
for _, e in tools.list_employees{} do
  if not e.manager then n = n + 1 end
end
return n
-- slip: tool_reference, no_manager
local n = 0
for _, e in ipairs(tools.list_employees) do
  if not e.manager then n = n + 1 end
end
return n
-- slip: tool_misspelled, no_manager
local n = 0
for _, e in ipairs(tools.list_employes{}) do
  if not e.manager then n = n + 1 end
end
return n
-- slip: equals_empty, no_manager
local n = 0
for _, e in ipairs(tools.list_employees{}) do
  if e.manager == nil or e.manager == "" then n = n + 1 end
end
return n
-- slip: default_text, no_manager
local n = 0
for _, e in ipairs(tools.list_employees{}) do
  local manager = e.manager or "none"
  if manager == "none" then n = n + 1 end
end
return n
-- slip: as_meant, travel
local sum = 0
for _, e in ipairs(tools.list_employees{}) do
  for _, x in ipairs(tools.get_expenses{employee_id = e.id}) do
    if x.category == "travel" then sum = sum + x.amount end
  end
end
return sum
-- slip: parallel, travel
local lists = parallel.map(tools.list_employees{}, function(e) return tools.get_expenses{employee_id = e.id} end)
local sum = 0
for _, list in ipairs(lists) do
  for _, x in ipairs(list) do
    if x.category == "travel" then sum = sum + x.amount end
  end
end
return sum
-- slip: id_argument, travel
local sum = 0
for _, e in ipairs(tools.list_employees{}) do
  for _, x in ipairs(tools.get_expenses{id = e.id}) do
    if x.category == "travel" then sum = sum + x.amount end
  end
end
return sum
-- slip: employee_argument, travel
local sum = 0
for _, e in ipairs(tools.list_employees{}) do
  for _, x in ipairs(tools.get_expenses{employee = e.id}) do
    if x.category == "travel" then sum = sum + x.amount end
  end
end
return sum
-- slip: name_for_id, travel
local sum = 0
for _, e in ipairs(tools.list_employees{}) do
  for _, x in ipairs(tools.get_expenses{employee_id = e.name}) do
    if x.category == "travel" then sum = sum + x.amount end
  end
end
return sum
-- slip: employee_id_field, travel
local sum = 0
for _, e in ipairs(tools.list_employees{}) do
  for _, x in ipairs(tools.get_expenses{employee_id = e.employee_id}) do
    if x.category == "travel" then sum = sum + x.amount end
  end
end
return sum
-- slip: type_for_category, travel
local sum = 0
for _, e in ipairs(tools.list_employees{}) do
  for _, x in ipairs(tools.get_expenses{employee_id = e.id}) do
    if x.type == "travel" then sum = sum + x.amount end
  end
end
return sum
-- slip: price_for_amount, travel
local sum = 0
for _, e in ipairs(tools.list_employees{}) do
  for _, x in ipairs(tools.get_expenses{employee_id = e.id}) do
    if x.category == "travel" then sum = sum + (x.price or 0) end
  end
end
return sum
-- slip: price_of_list, travel
local sum = 0
for _, e in ipairs(tools.list_employees{}) do
  local x = tools.get_expenses{employee_id = e.id}
  if x.category == "travel" then sum = sum + x.amount end
end
return sum
-- slip: expenses_field, travel
local sum = 0
for _, e in ipairs(tools.list_employees{}) do
  for _, x in ipairs(tools.get_expenses{employee_id = e.id}.expenses or {}) do
    if x.category == "travel" then sum = sum + x.amount end
  end
end
return sum
-- slip: ids_from_zero, travel
local sum = 0
for id = 0, 5 do
  for _, x in ipairs(tools.get_expenses{employee_id = id}) do
    if x.category == "travel" then sum = sum + x.amount end
  end
end
return sum
-- slip: capital_category, travel, wrong
local sum = 0
for _, e in ipairs(tools.list_employees{}) do
  for _, x in ipairs(tools.get_expenses{employee_id = e.id}) do
    if x.category == "Travel" then sum = sum + x.amount end
  end
end
return sum
-- slip: tonumber_gsub, travel
local sum = 0
for _, e in ipairs(tools.list_employees{}) do
  for _, x in ipairs(tools.get_expenses{employee_id = e.id}) do
    if x.category == "travel" then sum = sum + tonumber(tostring(x.amount):gsub(",", "")) end
  end
end
return sum
-- slip: missing_argument, travel
local sum = 0
for _, x in ipairs(tools.get_expenses{}) do
  if x.category == "travel" then sum = sum + x.amount end
end
return sum
-- slip: list_of_ids, travel
local sum = 0
for _, x in ipairs(tools.get_expenses{employee_id = {1, 2, 3, 4, 5}}) do
  if x.category == "travel" then sum = sum + x.amount end
end
return sum
-- slip: shadowed_sum, travel
local sum = 0
for _, e in ipairs(tools.list_employees{}) do
  for _, x in ipairs(tools.get_expenses{employee_id = e.id}) do
    if x.category == "travel" then local sum = sum + x.amount end
  end
end
return sum
-- slip: as_meant, pending
local n = 0
for _, e in ipairs(tools.list_employees{}) do
  for _, x in ipairs(tools.get_expenses{employee_id = e.id}) do
    if x.approved == nil then n = n + 1 end
  end
end
return n
-- slip: null_word, pending
local n = 0
for _, e in ipairs(tools.list_employees{}) do
  for _, x in ipairs(tools.get_expenses{employee_id = e.id}) do
    if x.approved == null then n = n + 1 end
  end
end
return n
-- slip: neither_true_nor_false, pending
local n = 0
for _, e in ipairs(tools.list_employees{}) do
  for _, x in ipairs(tools.get_expenses{employee_id = e.id}) do
    if x.approved ~= true and x.approved ~= false then n = n + 1 end
  end
end
return n
-- slip: not_approved, pending
local n = 0
for _, e in ipairs(tools.list_employees{}) do
  for _, x in ipairs(tools.get_expenses{employee_id = e.id}) do
    if not x.approved then n = n + 1 end
  end
end
return n
-- slip: not_approved_nor_false, pending
local n = 0
for _, e in ipairs(tools.list_employees{}) do
  for _, x in ipairs(tools.get_expenses{employee_id = e.id}) do
    if not x.approved and x.approved ~= false then n = n + 1 end
  end
end
return n
-- slip: python_none, pending
local n = 0
for _, e in ipairs(tools.list_employees{}) do
  for _, x in ipairs(tools.get_expenses{employee_id = e.id}) do
    if x.approved is None then n = n + 1 end
  end
end
return n
-- slip: capital_true, pending
local n = 0
for _, e in ipairs(tools.list_employees{}) do
  for _, x in ipairs(tools.get_expenses{employee_id = e.id}) do
    if x.approved ~= True and x.approved ~= False then n = n + 1 end
  end
end
return n
-- slip: status_field, pending
local n = 0
for _, e in ipairs(tools.list_employees{}) do
  for _, x in ipairs(tools.get_expenses{employee_id = e.id}) do
    if x.status == "pending" then n = n + 1 end
  end
end
return n
-- slip: type_boolean, pending
local n = 0
for _, e in ipairs(tools.list_employees{}) do
  for _, x in ipairs(tools.get_expenses{employee_id = e.id}) do
    if type(x.approved) ~= "boolean" then n = n + 1 end
  end
end
return n
-- slip: type_bool, pending
local n = 0
for _, e in ipairs(tools.list_employees{}) do
  for _, x in ipairs(tools.get_expenses{employee_id = e.id}) do
    if type(x.approved) ~= "bool" then n = n + 1 end
  end
end
return n
-- slip: as_meant, warmest
local best, degrees
for _, city in ipairs{"Oslo", "Rome", "Cairo"} do
  local w = tools.weather{city = city}
  if not degrees or w.temperature.value > degrees then best, degrees = city, w.temperature.value end
end
return best
-- slip: decoded, warmest
local best, degrees
for _, city in ipairs{"Oslo", "Rome", "Cairo"} do
  local w = json.decode(tools.weather{city = city})
  if not degrees or w.temperature.value > degrees then best, degrees = city, w.temperature.value end
end
return best
-- slip: temperature_number, warmest
local best, degrees
for _, city in ipairs{"Oslo", "Rome", "Cairo"} do
  local w = tools.weather{city = city}
  if not degrees or w.temperature > degrees then best, degrees = city, w.temperature end
end
return best
-- slip: temp_field, warmest
local best, degrees
for _, city in ipairs{"Oslo", "Rome", "Cairo"} do
  local w = tools.weather{city = city}
  if not degrees or w.temp > degrees then best, degrees = city, w.temp end
end
return best
-- slip: temp_default, warmest
local best, degrees = nil, -100
for _, city in ipairs{"Oslo", "Rome", "Cairo"} do
  local t = tools.weather{city = city}.temp or 0
  if t > degrees then best, degrees = city, t end
end
return best
-- slip: celsius, warmest
local best, degrees = nil, -100
for _, city in ipairs{"Oslo", "Rome", "Cairo"} do
  local t = tools.weather{city = city}.temperature.celsius or 0
  if t > degrees then best, degrees = city, t end
end
return best
-- slip: location, warmest
local best, degrees
for _, city in ipairs{"Oslo", "Rome", "Cairo"} do
  local w = tools.weather{location = city}
  if not degrees or w.temperature.value > degrees then best, degrees = city, w.temperature.value end
end
return best
-- slip: city_list, warmest
local best, degrees
local all = tools.weather{cities = {"Oslo", "Rome", "Cairo"}}
return all[1].city
-- slip: pairs_of_cities, warmest
local best, degrees
for city in ipairs{"Oslo", "Rome", "Cairo"} do
  local w = tools.weather{city = city}
  if not degrees or w.temperature.value > degrees then best, degrees = city, w.temperature.value end
end
return best
-- slip: bracket_list, warmest
local cities = ["Oslo", "Rome", "Cairo"]
return cities[1]
-- slip: sorted_table, warmest
local list = {}
for _, city in ipairs{"Oslo", "Rome", "Cairo"} do
  list[#list + 1] = {city = city, t = tools.weather{city = city}.temperature.value}
end
table.sort(list, function(a, b) return a.t > b.t end)
return list[1].city
-- slip: current_temperature, warmest
local best, degrees
for _, city in ipairs{"Oslo", "Rome", "Cairo"} do
  local w = tools.weather{city = city}
  if not degrees or w.current.temperature > degrees then best, degrees = city, w.current.temperature end
end
return best
-- slip: parallel_map_city, warmest
local cities = {"Oslo", "Rome", "Cairo"}
local all = parallel.map(cities, function(city) return tools.weather{city = city} end)
local best = 1
for i, w in ipairs(all) do if w.temperature.value > all[best].temperature.value then best = i end end
return cities[best]
-- slip: parallel_map_tool, warmest
local cities = {"Oslo", "Rome", "Cairo"}
local all = parallel.map(cities, tools.weather)
return all[1].city
-- slip: as_meant, csv_sum
local sum = 0
for line in tools.read_file{path = "report.csv"}:gmatch("[^\n]+") do
  local amount = line:match(",(%d+)$")
  if amount then sum = sum + tonumber(amount) end
end
return sum
-- slip: split_method, csv_sum
local sum = 0
for _, line in ipairs(tools.read_file{path = "report.csv"}:split("\n")) do
  sum = sum + (tonumber(line:split(",")[2]) or 0)
end
return sum
-- slip: split_function, csv_sum
local sum = 0
for _, line in ipairs(split(tools.read_file{path = "report.csv"}, "\n")) do
  sum = sum + (tonumber(line) or 0)
end
return sum
-- slip: rows, csv_sum
local sum = 0
for _, row in ipairs(tools.read_file{path = "report.csv"}.rows) do sum = sum + row.amount end
return sum
-- slip: content_field, csv_sum
local text = tools.read_file{path = "report.csv"}.content
local sum = 0
for amount in text:gmatch(",(%d+)") do sum = sum + amount end
return sum
-- slip: text_as_list, csv_sum
local sum = 0
for _, row in ipairs(tools.read_file{path = "report.csv"}) do sum = sum + row.amount end
return sum
-- slip: decoded, csv_sum
local sum = 0
for _, row in ipairs(json.decode(tools.read_file{path = "report.csv"})) do sum = sum + row.amount end
return sum
-- slip: regular_expression, csv_sum
local sum = 0
for amount in tools.read_file{path = "report.csv"}:gmatch(",(\\d+)") do sum = sum + tonumber(amount) end
return sum
-- slip: regular_expression_escape, csv_sum
local sum = 0
for amount in tools.read_file{path = "report.csv"}:gmatch(",(\d+)") do sum = sum + tonumber(amount) end
return sum
-- slip: alternatives, csv_sum
local sum = 0
for amount in tools.read_file{path = "report.csv"}:gmatch("(10|20|30)") do sum = sum + tonumber(amount) end
return sum
-- slip: text_arithmetic, csv_sum
local sum = 0
for amount in tools.read_file{path = "report.csv"}:gmatch(",(%d+)") do sum = sum + amount end
return sum
-- slip: joins_numbers, csv_sum
local sum = ""
for amount in tools.read_file{path = "report.csv"}:gmatch(",(%d+)") do sum = sum .. amount end
return tonumber(sum), "joined"
-- slip: io_open, csv_sum
local sum = 0
for line in io.open("report.csv"):lines() do sum = sum + tonumber(line:match(",(%d+)")) end
return sum
-- slip: file_name, csv_sum
local sum = 0
for amount in tools.read_file{filename = "report.csv"}:gmatch(",(%d+)") do sum = sum + tonumber(amount) end
return sum
-- slip: gsub_tonumber, csv_sum
local sum = 0
for line in tools.read_file{path = "report.csv"}:gmatch("%a,[^\n]+") do
  sum = sum + tonumber(line:gsub("%a,", ""))
end
return sum
-- slip: python_split, csv_sum
local lines = tools.read_file{path = "report.csv"}.split("\n")
return #lines
-- slip: as_meant, tickets
local n = 0
for _, e in ipairs(tools.list_employees{}) do
  if e.department == "Sales" then
    tools.create_ticket{title = "Review " .. e.name, priority = "normal"}
    n = n + 1
  end
end
return n
-- slip: medium_priority, tickets
local n = 0
for _, e in ipairs(tools.list_employees{}) do
  if e.department == "Sales" then
    tools.create_ticket{title = "Review " .. e.name, priority = "medium"}
    n = n + 1
  end
end
return n
-- slip: name_argument, tickets
local n = 0
for _, e in ipairs(tools.list_employees{}) do
  if e.department == "Sales" then
    tools.create_ticket{name = "Review " .. e.name}
    n = n + 1
  end
end
return n
-- slip: dept_field, tickets
local n = 0
for _, e in ipairs(tools.list_employees{}) do
  if e.dept == "Sales" then
    tools.create_ticket{title = "Review " .. e.name}
    n = n + 1
  end
end
return n
-- slip: counts_success, tickets
local n = 0
for _, e in ipairs(tools.list_employees{}) do
  if e.department == "Sales" then
    local t = tools.create_ticket{title = "Review " .. e.name}
    if t.success then n = n + 1 end
  end
end
return n
-- slip: counts_id, tickets
local n = 0
for _, e in ipairs(tools.list_employees{}) do
  if e.department == "Sales" then
    local t = tools.create_ticket{title = "Review " .. e.name}
    if t.id then n = n + 1 end
  end
end
return n
-- slip: counts_number, tickets
local n = 0
for _, e in ipairs(tools.list_employees{}) do
  if e.department == "Sales" then
    local t = tools.create_ticket{title = "Review " .. e.name}
    if t.number then n = n + 1 end
  end
end
return n
-- slip: department_argument, tickets
local n = 0
for _, e in ipairs(tools.list_employees{department = "Sales"}) do
  tools.create_ticket{title = "Review " .. e.name}
  n = n + 1
end
return n
-- slip: full_name, tickets
local n = 0
for _, e in ipairs(tools.list_employees{}) do
  if e.department == "Sales" then
    tools.create_ticket{title = "Review " .. e.full_name}
    n = n + 1
  end
end
return n
-- slip: unknown_tool_last, tickets
local n = 0
for _, e in ipairs(tools.list_employees{}) do
  if e.department == "Sales" then
    tools.create_ticket{title = "Review " .. e.name}
    n = n + 1
  end
end
tools.notify{text = "done"}
return n
-- slip: foreign_function_last, tickets
local n = 0
for _, e in ipairs(tools.list_employees{}) do
  if e.department == "Sales" then
    tools.create_ticket{title = "Review " .. e.name}
    n = n + 1
  end
end
console.log("created", n)
return n
-- slip: print_plus_last, tickets
local n = 0
for _, e in ipairs(tools.list_employees{}) do
  if e.department == "Sales" then
    tools.create_ticket{title = "Review " .. e.name}
    n = n + 1
  end
end
print("created " + n)
return n
-- slip: as_meant, departments
local counts = {}
for _, e in ipairs(tools.list_employees{}) do
  counts[e.department] = (counts[e.department] or 0) + 1
end
return counts
-- slip: group_then_count, departments
local groups = {}
for _, e in ipairs(tools.list_employees{}) do
  groups[e.department] = groups[e.department] or {}
  table.insert(groups[e.department], e)
end
local counts = {}
for name, list in pairs(groups) do counts[name] = #list end
return counts
-- slip: group_ipairs, departments
local counts = {}
for _, e in ipairs(tools.list_employees{}) do
  counts[e.department] = (counts[e.department] or 0) + 1
end
local out = {}
for name, n in ipairs(counts) do out[name] = n end
return out
-- slip: increments_nil, departments
local counts = {}
for _, e in ipairs(tools.list_employees{}) do
  counts[e.department] = counts[e.department] + 1
end
return counts
-- slip: dept_key, departments
local counts = {}
for _, e in ipairs(tools.list_employees{}) do
  local d = e.dept or "none"
  counts[d] = (counts[d] or 0) + 1
end
return counts
-- slip: defaultdict, departments
local counts = defaultdict(int)
for _, e in ipairs(tools.list_employees{}) do counts[e.department] = counts[e.department] + 1 end
return counts
-- slip: json_text, departments
local counts = {}
for _, e in ipairs(tools.list_employees{}) do
  counts[e.department] = (counts[e.department] or 0) + 1
end
return json.decode(json.encode(counts))
-- slip: object_entries, departments
local counts = {}
for _, e in ipairs(tools.list_employees{}) do
  counts[e.department] = (counts[e.department] or 0) + 1
end
return Object.fromEntries(counts)
-- slip: as_meant, readings
local missing, all = 0, tools.sensor{}
for i = 1, #all do
  if all[i] == nil then missing = missing + 1 end
end
return {missing, #all}
-- slip: ipairs_nil, readings
local missing, n = 0, 0
for _, v in ipairs(tools.sensor{}) do
  n = n + 1
  if v == nil then missing = missing + 1 end
end
return {missing, n}
-- slip: ipairs_not, readings
local missing, n = 0, 0
for _, v in ipairs(tools.sensor{}) do
  n = n + 1
  if not v then missing = missing + 1 end
end
return {missing, n}
-- slip: ipairs_null, readings
local missing, n = 0, 0
for _, v in ipairs(tools.sensor{}) do
  n = n + 1
  if v == null then missing = missing + 1 end
end
return {missing, n}
-- slip: counts_values, readings
local all = tools.sensor{}
local values = 0
for i = 1, #all do if all[i] then values = values + 1 end end
return {#all - values, #all}
-- slip: values_field, readings
local all = tools.sensor{}.values
local missing = 0
for _, v in ipairs(all) do if v == nil then missing = missing + 1 end end
return {missing, #all}
-- slip: readings_field, readings
local r = tools.sensor{}
local all = r.readings or r
local missing = 0
for _, v in ipairs(all) do if v == nil then missing = missing + 1 end end
return {missing, #all}
-- slip: zero_based, readings
local all = tools.sensor{}
local missing = 0
for i = 0, #all - 1 do if all[i] == nil then missing = missing + 1 end end
return {missing, #all}
-- slip: json_null, readings
local missing, all = 0, tools.sensor{}
for i = 1, #all do
  if all[i] == nil or all[i] == json.null then missing = missing + 1 end
end
return {missing, #all}
