-- The library `list`: functions over lists and records, in Lua, so that callbacks may call tools and every limit holds.
--
-- A `key` is the name of a field, a position, or a function(item, index). Lists that are given stay as they are.
return function(host, stop, order, nulls, text_of)
  local type, next, tostring, tonumber, rawget = type, next, tostring, tonumber, rawget
  local select, sub, format, floor, abs = select, string.sub, string.format, math.floor, math.abs
  local concat, sort, move, mtype, tointeger = table.concat, table.sort, table.move, math.type, math.tointeger
  local setmetatable, huge = setmetatable, math.huge
  local array, length, kind, each = nulls.array, nulls.length, host.kind, order.each
  local FEW_NAMES, MOST_DIGITS = 8, 15

  local M = {}
  local appearance = setmetatable({}, { __mode = "k" }) -- result of group_by or count_by -> its keys as they first appeared

  local function fail(name, problem) stop.complain("list." .. name .. ": " .. problem) end

  -- The number of elements of a list; an object is an error.
  local function size_of(items, name)
    if type(items) ~= "table" or host.is_sealed(items) then fail(name, "expects a list, got " .. kind(items)) end
    local size = length(items)
    if size == 0 and next(items) ~= nil then
      fail(name, "expects a list, got an object with the fields " .. order.names(items, FEW_NAMES) .. "; list.entries(t) makes a list of it")
    end
    return size
  end

  local function value_in(item, key, index, name)
    if item == nil then return nil end
    if type(item) ~= "table" then
      fail(name, format("item %d is a %s, not an object with the field '%s'", index, kind(item), key))
    end
    local value = item[key]
    if value == host.null then return nil end
    return value
  end

  -- The values of a key for every item. A field that no item has is an error, unless it is `optional`.
  local function values_of(items, size, key, name, optional)
    local values = {}
    if key == nil and not optional then
      return items
    elseif type(key) == "function" then
      for index = 1, size do
        local value = key(items[index], index)
        if value ~= host.null then values[index] = value end
      end
      return values
    elseif type(key) ~= "string" and not tointeger(key) then
      fail(name, "expects the name of a field or a function, got " .. kind(key))
    end
    local found = optional or size == 0
    for index = 1, size do
      local item = items[index]
      local value = value_in(item, key, index, name)
      values[index] = value
      if not found then
        local _, absent = nulls.of(item)
        found = value ~= nil or item == nil or absent ~= nil and absent[key] ~= nil
      end
    end
    if not found then fail(name, format("no item has the field '%s'; the first has: %s", key, order.names(items[1], FEW_NAMES))) end
    return values
  end

  function M.map(items, key)
    local size = size_of(items, "map")
    local values = values_of(items, size, key, "map", true)
    return array(move(values, 1, size, 1, {}), size)
  end

  function M.filter(items, key)
    local size = size_of(items, "filter")
    local values, out, count = values_of(items, size, key, "filter", true), {}, 0
    for index = 1, size do
      if values[index] then
        count = count + 1
        out[count] = items[index]
      end
    end
    return array(out, count)
  end

  -- Sorting: for each key, beginning with the last, the items are distributed over its distinct values, and these are sorted.

  local RANKS = { [false] = 0, [true] = 1 }

  -- The values of one kind as numbers or strings; those that are missing or not a number have none.
  local function comparable(values, size, label, name)
    local first, at, out = nil, nil, {}
    for index = 1, size do
      local value = values[index]
      if value ~= nil and value == value and value ~= host.null then
        local of = type(value)
        if of ~= "number" and of ~= "string" and of ~= "boolean" then
          fail(name, format("%s of item %d is a %s; only numbers, strings and booleans have an order", label, index, kind(value)))
        end
        if not first then first, at = of, index end
        if of ~= first then
          fail(name, format("%s is a %s in item %d and a %s in item %d; convert one of them in a function", label, first, at, of, index))
        end
        out[index] = of == "boolean" and RANKS[value] or value
      end
    end
    return out
  end

  local function label_of(key)
    return type(key) == "function" and "the key" or key == nil and "the value" or "'" .. tostring(key) .. "'"
  end

  -- `places` in the order of their values; equal ones stay as they are, those without a value come last.
  local function distributed(places, values, size, descending)
    local at, distinct, missing = {}, {}, {}
    for position = 1, size do
      local place = places[position]
      local value = values[place]
      if value == nil then
        missing[#missing + 1] = place
      else
        local there = at[value]
        if there == nil then
          at[value] = place
          distinct[#distinct + 1] = value
        elseif type(there) == "table" then
          there[#there + 1] = place
        else
          at[value] = { there, place }
        end
      end
    end
    sort(distinct)
    local out, count, kinds = {}, 0, #distinct
    for index = 1, kinds do
      local there = at[distinct[descending and kinds + 1 - index or index]]
      if type(there) == "table" then
        move(there, 1, #there, count + 1, out)
        count = count + #there
      else
        count = count + 1
        out[count] = there
      end
    end
    return move(missing, 1, #missing, count + 1, out)
  end

  function M.sort_by(items, ...)
    local size, given = size_of(items, "sort_by"), select("#", ...)
    local places, sorts = {}, {}
    for index = 1, size do places[index] = index end
    for number = 1, given == 0 and 1 or given do
      local key, descending = select(number, ...), false
      if type(key) == "string" and sub(key, 1, 1) == "-" then key, descending = sub(key, 2), true end
      if key == nil and given > 0 then fail("sort_by", "expects the names of fields or functions, got nil") end
      local values = values_of(items, size, key, "sort_by")
      sorts[number] = { comparable(values, size, label_of(key), "sort_by"), descending }
    end
    for number = #sorts, 1, -1 do places = distributed(places, sorts[number][1], size, sorts[number][2]) end
    local out = {}
    for index = 1, size do out[index] = items[places[index]] end
    return array(out, size)
  end

  -- What a group is called: keys of objects are strings and integers.
  local function group_name(value, index, name)
    local of = type(value)
    if of == "string" or mtype(value) == "integer" then return value end
    if of == "nil" or value == host.null then return "null" end
    if of == "boolean" or of == "number" then return tointeger(value) or tostring(value) end
    fail(name, format("the key of item %d is a %s; it must be a string, a number or a boolean", index, kind(value)))
  end

  local function grouped(items, key, name, add)
    local size = size_of(items, name)
    local values, groups, names = values_of(items, size, key, name), {}, {}
    for index = 1, size do
      local group = group_name(values[index], index, name)
      if groups[group] == nil then names[#names + 1] = group end
      groups[group] = add(groups[group], items[index])
    end
    appearance[groups] = names
    return groups[1] ~= nil and nulls.as_object(groups) or groups -- names that are 1, 2, 3 make no list
  end

  local function add_item(group, item)
    group = group or array({}, 0)
    group[#group + 1] = item == nil and host.null or item
    return group
  end

  function M.group_by(items, key) return (grouped(items, key, "group_by", add_item)) end
  function M.count_by(items, key) return (grouped(items, key, "count_by", function(count) return (count or 0) + 1 end)) end

  function M.sum(items, key)
    local size = size_of(items, "sum")
    local values, total = values_of(items, size, key, "sum"), 0
    for index = 1, size do
      local value = values[index]
      if type(value) == "number" then
        total = total + value
      elseif value ~= nil and value ~= host.null then
        fail("sum", format("%s of item %d is a %s, not a number", label_of(key), index, kind(value)))
      end
    end
    return total
  end

  local function extreme(name, descending)
    return function(items, key)
      local size = size_of(items, name)
      local values = comparable(values_of(items, size, key, name), size, label_of(key), name)
      local best
      for index = 1, size do
        local value = values[index]
        if value ~= nil and (not best or descending and value > values[best] or not descending and value < values[best]) then
          best = index
        end
      end
      if best then return items[best] end
      return nil
    end
  end
  M.min_by, M.max_by = extreme("min_by", false), extreme("max_by", true)

  function M.unique(items, key)
    local size = size_of(items, "unique")
    local values, seen, out = values_of(items, size, key, "unique"), {}, {}
    for index = 1, size do
      local value = values[index]
      local mark = type(value) == "table" and "t" .. text_of(value) or type(value) == "string" and "s" .. value or value
      if mark == nil or mark ~= mark then mark = host.null end
      if not seen[mark] then
        seen[mark] = true
        out[#out + 1] = items[index] == nil and host.null or items[index]
      end
    end
    return array(out, #out)
  end

  function M.take(items, count)
    local size, wanted = size_of(items, "take"), tointeger(count)
    if not wanted or wanted < 0 then fail("take", "expects how many, a whole number of at least 0, got " .. host.tostring(count)) end
    if wanted > size then wanted = size end
    return array(move(items, 1, wanted, 1, {}), wanted)
  end

  -- The keys of an object: those of a result of group_by and count_by as they first appeared, all others in the order of pairs.
  local function keys_of(t, name)
    if type(t) ~= "table" or host.is_sealed(t) then fail(name, "expects a table, got " .. kind(t)) end
    local keys, known = {}, {}
    for _, key in next, appearance[t] or {} do
      if rawget(t, key) ~= nil then
        keys[#keys + 1] = key
        known[key] = true
      end
    end
    for key in each(t) do
      if not known[key] then keys[#keys + 1] = key end
    end
    return keys
  end

  function M.keys(t)
    local keys = keys_of(t, "keys")
    return array(keys, #keys)
  end

  function M.values(t)
    local keys = keys_of(t, "values")
    for index = 1, #keys do keys[index] = rawget(t, keys[index]) end
    return array(keys, #keys)
  end

  function M.entries(t)
    local keys = keys_of(t, "entries")
    for index = 1, #keys do keys[index] = { key = keys[index], value = rawget(t, keys[index]) } end
    return array(keys, #keys)
  end

  -- Half away from zero, of the decimal number that is shown: 2.675 becomes 2.68, though its binary value is a little less.
  function M.round(x, digits)
    if type(x) ~= "number" then fail("round", "expects a number, got " .. kind(x)) end
    local places = digits == nil and 0 or tointeger(digits)
    if not places or abs(places) > MOST_DIGITS then fail("round", "expects a number of digits from -15 to 15, got " .. host.tostring(digits)) end
    if x ~= x or x == huge or x == -huge or mtype(x) == "integer" and places >= 0 then return x end
    local scale = 10.0 ^ abs(places)
    local scaled = places == 0 and x or tonumber(format("%.15g", places < 0 and x / scale or x * scale))
    if not scaled or abs(scaled) >= 2 ^ 52 then return x end -- nil where it is infinite
    local whole = floor(abs(scaled))
    if abs(scaled) - whole >= 0.5 then whole = whole + 1 end
    if scaled < 0 then whole = -whole end
    if places < 0 then return tointeger(whole * scale) or whole * scale end
    if places == 0 then return tointeger(whole) or whole end
    return whole / scale
  end

  function M.join(items, separator, key)
    local size = size_of(items, "join")
    if separator == nil then separator = ", " end
    if type(separator) ~= "string" then fail("join", "expects a string between the items, got " .. kind(separator)) end
    local values, parts = key == nil and items or values_of(items, size, key, "join", true), {}
    for index = 1, size do
      local value = values[index]
      parts[index] = type(value) == "string" and value or value == nil and "null" or text_of(value)
    end
    return (host.checked(concat(parts, separator)))
  end

  return M
end
