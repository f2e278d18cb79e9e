-- Functions over arrays of records: with the names of fields, or with closures.
return function(R, lib, host)
  local type, next, tonumber = lib.type, lib.next, lib.tonumber
  local sub, format, concat, move = lib.string.sub, lib.string.format, lib.table.concat, lib.table.move
  local math = lib.math
  local U, copy, array, is_map, is_int = R.U, R.copy, R.array, R.is_map, R.is_int
  local add_natives, native, kind_of, snapshot = R.add_natives, R.native, R.kind_of, R.snapshot
  local ARRAY, FEW_NAMES, MOST_DIGITS = R.ARRAY, 8, 15

  local function fail(pos, name, problem, hint) R.raise("ErrorRuntime", name .. ": " .. problem, pos, nil, hint) end

  local function names_of(map)
    local keys, count = R.sorted_keys(map)
    if count > FEW_NAMES then keys = move(keys, 1, FEW_NAMES, 1, {}) end
    return concat(keys, ", ") .. (count > FEW_NAMES and ", …" or "")
  end

  local function is_function(K, name)
    local functions = K.S.functions
    return functions[name .. "_0"] or functions[name .. "_1"] or functions[name .. "_2"] or native[name] or R.is_tool(name)
  end

  -- Whether `given` names a field of the items: a string is one unless it is the name of a function and no field of the first map.
  local function is_field(K, list, given)
    if type(given) ~= "string" then return false end
    for i = 1, #list do
      if is_map(list[i]) then return list[i][given] ~= nil or not is_function(K, given) end
    end
    return not is_function(K, given)
  end

  -- The value of a field, () where an item has none.
  local function value_in(item, field, index, pos, name)
    if item == U then return U end
    if not is_map(item) then fail(pos, name, format("element %d is of type %s, not a map with the key '%s'", index, kind_of(item), field)) end
    local value = item[field]
    if value == nil then return U end
    return value
  end

  -- The values of a key for every element; nil when `given` is no key. A field that no map has is an error, unless it is `optional`.
  local function values_of(K, d, pos, list, given, name, optional)
    local out = {}
    if given == nil then return move(list, 1, #list, 1, out) end
    if not is_field(K, list, given) then
      local callee = R.callback(given)
      if not callee then return nil end
      local call = R.caller(K, d, pos, name, callee)
      for i = 1, #list do out[i] = call(nil, list[i], i - 1) end
      return out
    end
    local found, first = optional or #list == 0, nil
    for i = 1, #list do
      out[i] = value_in(list[i], given, i - 1, pos, name)
      found = found or list[i] == U or list[i][given] ~= nil
      first = first or list[i]
    end
    if not found then fail(pos, name, format("no element has the key '%s'; the first has: %s", given, names_of(first))) end
    return out
  end

  -- map and filter, which take closures and names of functions, with the names of fields too.
  local function with_fields(name, fn)
    local before = native[name][ARRAY]
    native[name][ARRAY] = function(K, d, pos, list, given, ...)
      if is_field(K, list, given) then return fn(list, given, pos) end
      return before(K, d, pos, list, given, ...)
    end
  end
  with_fields("map", function(list, field, pos)
    local out = {}
    for i = 1, #list do out[i] = copy(value_in(list[i], field, i - 1, pos, "map")) end
    return array(out)
  end)
  with_fields("filter", function(list, field, pos)
    local out = {}
    for i = 1, #list do
      local value = value_in(list[i], field, i - 1, pos, "filter")
      if value ~= U and value ~= false then out[#out + 1] = copy(list[i]) end
    end
    return array(out)
  end)

  -- Sorting by fields -------------------------------------------------------------------------------------------------

  local ORDERED = { i64 = "number", f64 = "number", string = "string", char = "string", bool = "bool" }

  -- The values as numbers or strings of one kind; those that are () or not a number have none.
  local function comparable(values, pos, name, label)
    local first, at, out = nil, nil, {}
    for i = 1, #values do
      local value = values[i]
      if value ~= U and value == value then
        local kind = kind_of(value)
        local of = ORDERED[kind]
        if not of then
          fail(pos, name, format("%s of element %d is of type %s; only numbers, strings and booleans have an order", label, i - 1, kind))
        end
        if not first then first, at = of, i end
        if of ~= first then
          fail(pos, name, format("%s is a %s in element %d and a %s in element %d", label, first, at - 1, of, i - 1),
            "convert one of them in a closure")
        end
        if kind == "char" then value = value[true] elseif kind == "bool" then value = value and 1 or 0 end
        out[i] = value
      end
    end
    return out
  end

  local function label_of(given) return type(given) == "string" and "'" .. given .. "'" or "the value" end

  -- The positions of the elements in order; those without a value come last.
  local function order_of(K, d, pos, list, name, ...)
    local columns, directions, places = {}, {}, {}
    for n, given in next, { ... } do
      local descending = type(given) == "string" and sub(given, 1, 1) == "-"
      local field = descending and sub(given, 2) or given
      local values = values_of(K, d, pos, list, field, name)
      if not values then return nil end
      columns[n], directions[n] = comparable(values, pos, name, label_of(field)), descending
    end
    for i = 1, #list do places[i] = i end
    R.merge_sort(places, function(a, b)
      for n = 1, #columns do
        local x, y = columns[n][a], columns[n][b]
        if x ~= y then
          if x == nil then return false elseif y == nil then return true end
          if directions[n] then return x > y end
          return x < y
        end
      end
      return false
    end)
    return places
  end

  -- Whether `given` is a function of one element: a key. One of two elements compares them.
  local function is_key(K, given)
    local callee = R.callback(given)
    if not callee then return false end
    local info, functions = callee[false], K.S.functions
    if info.count then return info.count - (info.curried and #info.curried or 0) == 1 end
    return not functions[info.name .. "_2"] and (functions[info.name .. "_1"] or native[info.name]) ~= nil
  end

  -- sort_by and order_by take a comparer, or keys: names of fields and functions of one element; "-name" means descending. sort_by
  -- sorts the array itself.
  local function by_fields(name, in_place)
    local before = native[name][ARRAY]
    native[name][ARRAY] = function(K, d, pos, list, given, ...)
      local field = type(given) == "string" and (sub(given, 1, 1) == "-" and sub(given, 2) or given)
      if not (field and is_field(K, list, field)) and not is_key(K, given) then
        local done = before(K, d, pos, list, given, ...)
        return done == U and copy(list) or done
      end
      local places = order_of(K, d, pos, list, name, given, ...)
      if not places then return nil end
      local items = snapshot(list)
      for i = 1, #places do places[i] = items[places[i]] end
      if in_place then R.replace(list, places) end
      return copy(array(places))
    end
  end
  by_fields("sort_by", true)
  by_fields("order_by", false)

  -- Groups, sums and choices --------------------------------------------------------------------------------------------

  local function group_name(value, pos, name, index)
    local kind = kind_of(value)
    if value == U then return "null" end
    if kind == "char" then return value[true] end
    if not ORDERED[kind] then
      fail(pos, name, format("the key of element %d is of type %s; it must be a string, a number or a boolean", index, kind))
    end
    return type(value) == "string" and value or R.display(value)
  end

  local function grouped(name, add)
    return function(K, d, pos, list, given, extra)
      if extra ~= nil then return nil end
      list = snapshot(list)
      local values = values_of(K, d, pos, list, given, name)
      if not values then return nil end
      local groups, count = {}, 0
      for i = 1, #list do
        local key = group_name(values[i], pos, name, i - 1)
        if groups[key] == nil then count = count + 1 end
        groups[key] = add(groups[key], list[i])
      end
      groups[true] = count
      return R.map(groups)
    end
  end

  local function total(pos, values, label)
    local sum = 0
    for i = 1, #values do
      local value = values[i]
      if type(value) == "number" then
        sum = sum + value
      elseif value ~= U then
        fail(pos, "sum", format("%s of element %d is of type %s, not a number", label, i - 1, kind_of(value)))
      end
    end
    return sum
  end

  local function extreme(name, descending)
    return function(K, d, pos, list, given, extra)
      if extra ~= nil then return nil end
      list = snapshot(list)
      local values = values_of(K, d, pos, list, given, name)
      if not values then return nil end
      values = comparable(values, pos, name, label_of(given))
      local best
      for i = 1, #list do
        local value = values[i]
        if value ~= nil and (not best or descending and value > values[best] or not descending and value < values[best]) then best = i end
      end
      if not best then return U end
      return copy(list[best])
    end
  end

  add_natives("array", true, {
    group_by = grouped("group_by", function(group, item)
      group = group or array({})
      group[#group + 1] = copy(item)
      return group
    end),
    count_by = grouped("count_by", function(count) return (count or 0) + 1 end),
    sum = function(K, d, pos, list, given, extra)
      local values = extra == nil and values_of(K, d, pos, snapshot(list), given, "sum")
      if not values then return nil end
      return total(pos, values, label_of(given))
    end,
    min_by = extreme("min_by", false),
    max_by = extreme("max_by", true),
    unique = function(K, d, pos, list, given, extra)
      list = snapshot(list)
      local values = extra == nil and values_of(K, d, pos, list, given, "unique")
      if not values then return nil end
      local seen, out = {}, {}
      for i = 1, #list do
        local mark = kind_of(values[i]) .. R.debug(values[i])
        if not seen[mark] then
          seen[mark] = true
          out[#out + 1] = copy(list[i])
        end
      end
      return array(out)
    end,
    take = function(K, d, pos, list, count, extra)
      if count == nil then return native.take.any(K, d, pos, list) end
      if not is_int(count) or extra ~= nil then return nil end
      if count < 0 then fail(pos, "take", format("expects a number of elements, got %d", count)) end
      return native.extract[ARRAY](K, d, pos, list, 0, count)
    end,
    join = function(K, d, pos, list, separator, given)
      if separator == nil then separator = ", " end
      if type(separator) ~= "string" then return nil end
      local values = values_of(K, d, pos, snapshot(list), given, "join", true)
      if not values then return nil end
      local tell = R.meter(pos)
      for i = 1, #values do
        values[i] = values[i] == U and "null" or R.display(values[i])
        tell(values[i])
        tell(separator)
      end
      return concat(values, separator)
    end,
  })

  add_natives("map", true, {
    entries = R.alone(function(map)
      local keys, count = R.sorted_keys(map)
      for i = 1, count do keys[i] = R.entries({ key = keys[i], value = copy(map[keys[i]]) }) end
      return array(keys)
    end),
  })

  -- Half away from zero, of the decimal number that is shown: 2.675 becomes 2.68, though its binary value is a little less.
  local function rounded(x, places)
    if x ~= x or x == math.huge or x == -math.huge then return x end
    local scale = 10.0 ^ math.abs(places)
    local scaled = tonumber(format("%.15g", places < 0 and x / scale or x * scale))
    if not scaled or math.abs(scaled) >= 2 ^ 52 then return x end -- nil where it is infinite
    local size = math.abs(scaled)
    local whole = math.floor(size)
    if size - whole >= 0.5 then whole = whole + 1 end
    if scaled < 0 then whole = -whole end
    return places < 0 and whole * scale or whole / scale
  end

  local plain_round = R.native_of("round", "f64")
  local function round(K, d, pos, x, digits, extra)
    local whole = math.type(x) == "integer"
    if extra ~= nil or digits ~= nil and not is_int(digits) then return nil end
    if digits == nil then
      if whole then return x end
      return plain_round(K, d, pos, x)
    end
    if digits < -MOST_DIGITS or digits > MOST_DIGITS then fail(pos, "round", format("expects from -15 to 15 digits, got %d", digits)) end
    if whole and digits >= 0 then return x end
    local result = rounded(x, digits)
    return whole and (math.tointeger(result) or x) or result + 0.0
  end
  add_natives("f64", true, { round = round })
  add_natives("i64", true, { round = round })
end
