-- Functions of arrays.
return function(R, lib, host)
  local type, next = lib.type, lib.next
  local move, remove, insert = lib.table.move, lib.table.remove, lib.table.insert
  local most = lib.math.maxinteger
  local U, copy, equals, add_natives, is_int = R.U, R.copy, R.equals, R.add_natives, R.is_int
  local is_array, array, callback, caller_of = R.is_array, R.array, R.callback, R.caller

  -- Start and length of a part, within bounds; negative starts count from the end.
  local function offset_len(length, start, count)
    if start < 0 then
      start = start < -length and 0 or length + start
    elseif start > length then
      start = length
    end
    if count <= 0 then
      count = 0
    elseif count > length - start then
      count = length - start
    end
    return start, count
  end
  R.offset_len = offset_len

  -- (range), (start) or (start, count) as start and count; nil for other arguments.
  local function span(start, count, optional)
    if R.is_range(start) then
      if count ~= nil then return nil end
      local from = start[true] < 0 and 0 or start[true]
      local to = start[false] < from and from or start[false]
      local size = to - from
      if R.kind_of(start) == "range=" and size < most then size = size + 1 end
      return from, size
    end
    if not is_int(start) then return nil end
    if count == nil then
      if optional then return start, most end
      return nil
    end
    if is_int(count) then return start, count end
  end
  R.span = span

  local function taken(list, start, count)
    local out = {}
    for i = 1, count do out[i] = copy(list[start + i]) end
    return array(out)
  end

  -- What changes a list in place serves arrays and the bytes of blobs. This takes a part out and returns it.
  local function cut(list, start, count)
    local length = #list
    local out = move(list, start + 1, start + count, 1, {})
    move(list, start + count + 1, length, start + 1)
    for i = length - count + 1, length do list[i] = nil end
    return out
  end

  -- Takes out all but a part.
  local function cut_around(list, start, count)
    local after = cut(list, start + count, #list - start - count)
    local before = cut(list, 0, start)
    return move(after, 1, #after, #before + 1, before)
  end

  -- Puts other items in the place of a part.
  local function put_in(list, start, count, items)
    local tail = cut(list, start, #list - start)
    move(items, 1, #items, start + 1, list)
    move(tail, count + 1, #tail, #list + 1, list)
  end
  R.cut, R.cut_around, R.put_in = cut, cut_around, put_in

  local in_place = {
    clear = function(list)
      for i = #list, 1, -1 do list[i] = nil end
      return U
    end,
    truncate = function(list, size)
      if not is_int(size) then return nil end
      for i = #list, (size < 0 and 0 or size) + 1, -1 do list[i] = nil end
      return U
    end,
    chop = function(list, size)
      if not is_int(size) then return nil end
      if size < #list then cut(list, 0, #list - (size < 0 and 0 or size)) end
      return U
    end,
    reverse = function(list)
      local count = #list
      for i = 1, count // 2 do list[i], list[count + 1 - i] = list[count + 1 - i], list[i] end
      return U
    end,
  }
  for name, fn in next, in_place do
    add_natives("array", false, { [name] = function(K, d, pos, list, size) return fn(list, size) end })
    add_natives("blob", false, { [name] = function(K, d, pos, blob, size) return fn(blob[true], size) end })
  end

  local snapshot, replace = R.snapshot, R.replace

  local function grown(list, pos, item)
    R.check_growth(list, pos, item)
    return U
  end

  local sorter = R.sorter

  -- Methods that go through the elements with a function; `fn` is told the callback's answer for each.
  local function each(caller, fn)
    return function(K, d, pos, list, given, start, extra)
      local callee = callback(given)
      if not callee or extra ~= nil or (start ~= nil and not is_int(start)) then return nil end
      return fn(caller_of(K, d, pos, caller, callee), snapshot(list), start, pos)
    end
  end

  local function first_index(list, start)
    return start and offset_len(#list, start, 0) + 1 or 1
  end

  local function find_where(test, list, start)
    for i = first_index(list, start), #list do
      if test(nil, list[i], i - 1) == true then return i end
    end
  end

  local function find_equal(list, value, start)
    for i = first_index(list, start), #list do
      if equals(list[i], value) then return i - 1 end
    end
    return -1
  end

  local function knows(K, name)
    local functions = K.S.functions
    return functions[name .. "_0"] or functions[name .. "_1"] or functions[name .. "_2"]
  end

  local properties = {
    len = function(list) return #list end,
    is_empty = function(list) return #list == 0 end,
  }
  R.getters.array = properties
  for name, fn in next, properties do add_natives("array", true, { [name] = R.alone(fn) }) end

  local index_where = each("index_of", function(test, list, start) return (find_where(test, list, start) or 0) - 1 end)

  local function reducer(backwards)
    local caller = backwards and "reduce_rev" or "reduce"
    return function(K, d, pos, list, given, initial)
      local callee = callback(given)
      if not callee then return nil end
      local result = initial == nil and U or initial
      list = snapshot(list)
      local count = #list
      local call = caller_of(K, d, pos, caller, callee, true)
      for n = 1, count do
        local i = backwards and count + 1 - n or n
        result = call(result, list[i], i - 1)
      end
      return result
    end
  end

  add_natives("array", true, {
    get = function(K, d, pos, list, index, extra)
      if not is_int(index) or extra ~= nil then return nil end
      local at = R.calc_index(#list, index)
      if index < -#list and #list > 0 then at = 0 end
      if not at then return U end
      return copy(list[at + 1])
    end,
    contains = function(K, d, pos, list, value, extra)
      if value == nil or extra ~= nil then return nil end
      return find_equal(list, value) >= 0
    end,
    index_of = function(K, d, pos, list, value, start)
      if value == nil or (start ~= nil and not is_int(start)) then return nil end
      if R.is_fn(value) or (type(value) == "string" and knows(K, value)) then return index_where(K, d, pos, list, value, start) end
      return find_equal(list, value, start)
    end,
    extract = function(K, d, pos, list, start, count)
      local from, size = span(start, count, true)
      if not from then return nil end
      return taken(list, offset_len(#list, from, size))
    end,
    map = each("map", function(call, list, start, pos)
      local out, tell = {}, R.meter(pos)
      for i = 1, #list do
        local value = call(nil, list[i], i - 1)
        out[i] = value
        tell(value)
      end
      return array(out)
    end),
    filter = each("filter", function(test, list)
      local out = {}
      for i = 1, #list do
        local item = list[i]
        if test(nil, item, i - 1) == true then out[#out + 1] = copy(item) end
      end
      return array(out)
    end),
    find = each("find", function(test, list, start)
      local at = find_where(test, list, start)
      if not at then return U end
      return copy(list[at])
    end),
    find_map = each("find_map", function(call, list, start)
      for i = first_index(list, start), #list do
        local value = call(nil, list[i], i - 1)
        if value ~= U then return value end
      end
      return U
    end),
    some = each("some", function(test, list) return find_where(test, list) ~= nil end),
    all = each("all", function(test, list)
      for i = 1, #list do
        if test(nil, list[i], i - 1) ~= true then return false end
      end
      return true
    end),
    reduce = reducer(false),
    reduce_rev = reducer(true),
    zip = function(K, d, pos, list, other, fn)
      if not is_array(other) then return nil end
      local out, count = {}, #list < #other and #list or #other
      local callee = fn ~= nil and callback(fn)
      if fn ~= nil and not callee then return nil end
      list, other = snapshot(list), snapshot(other)
      local tell = R.meter(pos)
      for i = 1, count do
        if callee then
          out[i] = R.invoke(K, d, pos, callee, nil, copy(list[i]), copy(other[i]))
        else
          out[i] = array({ copy(list[i]), copy(other[i]) })
        end
        tell(out[i])
      end
      return array(out)
    end,
    ["order order_by"] = sorter(false, false),
    order_desc = sorter(false, true),
    to_blob = function(K, d, pos, list) return R.blob_of(list) end,
  })

  add_natives("array", false, {
    push = function(K, d, pos, list, item, extra)
      if item == nil or extra ~= nil then return nil end
      list[#list + 1] = item
      return grown(list, pos, item)
    end,
    append = function(K, d, pos, list, other)
      if not is_array(other) then return nil end
      move(other, 1, #other, #list + 1, list)
      return grown(list, pos)
    end,
    insert = function(K, d, pos, list, index, item)
      if not is_int(index) or item == nil then return nil end
      insert(list, offset_len(#list, index, 0) + 1, item)
      return grown(list, pos, item)
    end,
    pad = function(K, d, pos, list, size, item)
      if not is_int(size) or item == nil then return nil end
      if size > #list and R.limited then
        local more = size - #list
        local arrays, maps, strings = R.sizes(item)
        if size > R.max_array or #list + more * (1 + arrays) > R.max_array then R.too_large("array", pos) end
        if maps > 0 and maps * more > R.max_map then R.too_large("map", pos) end
        if strings > 0 and strings * more > R.max_string then R.too_large("string", pos) end
      end
      for i = #list + 1, size do list[i] = copy(item) end
      return U
    end,
    pop = function(K, d, pos, list, extra)
      if extra ~= nil then return nil end
      local count = #list
      if count == 0 then return U end
      local item = list[count]
      list[count] = nil
      return item
    end,
    shift = function(K, d, pos, list, extra)
      if extra ~= nil then return nil end
      if #list == 0 then return U end
      return remove(list, 1)
    end,
    remove = function(K, d, pos, list, index)
      if not is_int(index) then return nil end
      local at = R.calc_index(#list, index)
      if not at then return U end
      return remove(list, at + 1)
    end,
    splice = function(K, d, pos, list, start, count, items)
      if R.is_range(start) then items, count = count, nil end
      local from, size = span(start, count)
      if not from or not is_array(items) then return nil end
      from, size = offset_len(#list, from, size)
      put_in(list, from, size, items)
      return grown(list, pos)
    end,
    split = function(K, d, pos, list, index)
      if not is_int(index) then return nil end
      local from = offset_len(#list, index, 0)
      return array(cut(list, from, #list - from))
    end,
    ["sort sort_by"] = sorter(true, false),
    sort_desc = sorter(true, true),
    dedup = function(K, d, pos, list, comparer)
      local callee = comparer ~= nil and callback(comparer)
      if comparer ~= nil and not callee then return nil end
      local kept, count = 0, #list
      local items = snapshot(list)
      for i = 1, count do
        local item, last = items[i], items[kept]
        local same = false
        if kept > 0 then
          if callee then
            same = R.invoke(K, d, pos, callee, nil, copy(last), copy(item)) == true
          else
            same = equals(last, item)
          end
        end
        if not same then
          kept = kept + 1
          items[kept] = item
        end
      end
      for i = count, kept + 1, -1 do items[i] = nil end
      replace(list, items)
      return U
    end,
    set = function(K, d, pos, list, index, value)
      if not is_int(index) or value == nil then return nil end
      local at = R.calc_index(#list, index)
      if at then
        list[at + 1] = value
        R.check_value(value, pos)
      end
      return U
    end,
    for_each = function(K, d, pos, list, given)
      local callee = callback(given)
      if not callee then return nil end
      local call = caller_of(K, d, pos, "map", callee, false, true)
      for i = 1, #list do
        if list[i] == nil then break end
        local _, changed = call(nil, list[i], i - 1)
        if changed ~= nil and list[i] ~= nil then list[i] = changed end
      end
      return U
    end,
  })

  -- drain takes out what the function or the range picks, retain all the rest; both return what they took.
  local function taker(caller, picked)
    return function(K, d, pos, list, given, count)
      local callee = (R.is_fn(given) or type(given) == "string") and callback(given)
      if callee then
        local kept, out = {}, {}
        local call = caller_of(K, d, pos, caller, callee)
        local items = snapshot(list)
        for i = 1, #items do
          local item = items[i]
          local yes = call(nil, item, i - 1) == true
          if yes == picked then out[#out + 1] = item else kept[#kept + 1] = item end
        end
        replace(list, kept)
        return array(out)
      end
      local from, size = span(given, count)
      if not from then return nil end
      if size <= 0 and not R.is_range(given) then return array({}) end
      from, size = offset_len(#list, from, size)
      if picked then return array(cut(list, from, size)) end
      return array(size > 0 and cut_around(list, from, size) or {})
    end
  end
  add_natives("array", false, { drain = taker("drain", true), retain = taker("retain", false) })
end
