-- JSON null in tables: it reads as nil, and is encoded as null again unless the script assigned the field.
--
-- A null field is absent. The table's metatable lists the fields that were null; objects with the same set share one. An array
-- with nulls has its own metatable, which lists their positions: its length counts them. Scripts never see these metatables.
-- Tables without nulls have no metatable, arrays without nulls the shared ARRAY.
return function(host, order)
  local type, next, rawget, rawset, rawlen, rawequal = type, next, rawget, rawset, rawlen, rawequal
  local setmetatable, getmetatable, raw_error = setmetatable, debug.getmetatable, error
  local concat, sort, mtype = table.concat, table.sort, math.type
  local ARRAY = host.array
  local FIELDS, SHARED, POSITIONS, COUNT = {}, {}, {}, {} -- keys in our metatables that no script can name
  local MOST_SHARED, MOST_KEPT = 16, 256

  local M = {}
  local beneath = setmetatable({}, { __mode = "k" }) -- table -> our metatable, if the script has set another

  local function checked_key(key)
    if key == nil then raw_error("index is nil", 3) end
    if key ~= key then raw_error("index is NaN", 3) end
  end

  -- Objects -----------------------------------------------------------------------------------------------------------

  local by_signature, transitions, kept = {}, {}, 0

  local function keep(cache, key, meta)
    if kept == MOST_KEPT then
      by_signature, transitions, kept = {}, {}, 0
      return meta
    end
    cache[key] = meta
    kept = kept + 1
    return meta
  end

  -- Lengths and types are part of it, so that no two sets have the same.
  local function signature(keys)
    local parts = {}
    for index = 1, #keys do
      local key = keys[index]
      parts[index] = mtype(key) and "i" .. key .. ";" or "s" .. #key .. ":" .. key
    end
    if #parts > 1 then sort(parts) end
    return concat(parts)
  end

  local newindex

  local function metatable(keys, shared)
    local fields = {}
    for index = 1, #keys do fields[keys[index]] = true end
    return { __newindex = newindex, [FIELDS] = fields, [SHARED] = shared }
  end

  -- The metatable for that list of null fields, and whether it may serve several tables; nil for an empty list.
  local function metatable_of(keys)
    local count = #keys
    if count == 0 then return nil end
    if count > MOST_SHARED then return metatable(keys, false), false end
    local name = signature(keys)
    return by_signature[name] or keep(by_signature, name, metatable(keys, true)), true
  end

  -- The metatable of an object whose field `key` is not null any more.
  local function without(meta, key)
    if not meta[SHARED] then
      meta[FIELDS][key] = nil
      return next(meta[FIELDS]) ~= nil and meta or nil
    end
    local known = transitions[meta]
    local after = known and known[key]
    if after ~= nil then return after or nil end
    local keys = {}
    for field in next, meta[FIELDS] do
      if field ~= key then keys[#keys + 1] = field end
    end
    after = (metatable_of(keys))
    known = transitions[meta] or {}
    transitions[meta] = known
    keep(known, key, after or false)
    return after
  end

  -- Called for keys that are absent, null or not.
  function newindex(object, key, value)
    local meta = getmetatable(object)
    if meta[FIELDS][key] then setmetatable(object, without(meta, key)) end
    checked_key(key)
    rawset(object, key, value)
  end

  -- Marks the listed fields of an object as null. They must be absent.
  function M.fields(object, keys) return setmetatable(object, (metatable_of(keys))) end

  -- Marks a table without nulls as an object, whatever its keys are.
  local plain_object = metatable({}, true)
  function M.as_object(object) return setmetatable(object, plain_object) end

  -- Arrays ------------------------------------------------------------------------------------------------------------

  local function length(list)
    local meta = getmetatable(list)
    local count, positions = meta[COUNT], meta[POSITIONS]
    while count > 0 and rawget(list, count) == nil and not positions[count] do count = count - 1 end
    meta[COUNT] = count
    return count
  end

  local function set(list, key, value)
    local meta = getmetatable(list)
    checked_key(key)
    rawset(list, key, value)
    if mtype(key) ~= "integer" then return end
    meta[POSITIONS][key] = nil
    if value == nil then return end
    local count = meta[COUNT]
    if key > count then
      count = length(list)
      while rawget(list, count + 1) ~= nil do count = count + 1 end
      meta[COUNT] = count
    end
  end

  -- Marks a list of `count` elements, of which those that are nil are null.
  function M.array(list, count)
    local positions
    for index = 1, count do
      if rawget(list, index) == nil then
        positions = positions or {}
        positions[index] = true
      end
    end
    if not positions then return setmetatable(list, ARRAY) end
    return setmetatable(list, { __index = ARRAY.__index, __len = length, __newindex = set, [POSITIONS] = positions, [COUNT] = count })
  end

  -- Whether it is an array with nulls, or was one.
  local function is_array(value)
    local meta = getmetatable(value)
    return meta ~= nil and rawget(meta, POSITIONS) ~= nil
  end
  M.is_array = is_array

  -- The length of a list, nulls included.
  function M.length(list)
    if is_array(list) then return length(list) end
    return rawlen(list)
  end

  local function renew(list, count, positions)
    local meta = getmetatable(list)
    meta[COUNT], meta[POSITIONS] = count, positions
  end

  -- table.insert(list, position, value) for an array with nulls.
  function M.insert(list, position, value)
    local count, positions, moved = length(list), getmetatable(list)[POSITIONS], {}
    for index = 1, position - 1 do moved[index] = positions[index] end
    for index = count, position, -1 do
      rawset(list, index + 1, rawget(list, index))
      moved[index + 1] = positions[index]
    end
    rawset(list, position, value)
    if value == nil then moved[position] = true end
    renew(list, count + 1, moved)
  end

  -- table.remove(list, position) for an array with nulls, where position is in it.
  function M.remove(list, position)
    local count, positions, moved = length(list), getmetatable(list)[POSITIONS], {}
    local removed = rawget(list, position)
    for index = 1, position - 1 do moved[index] = positions[index] end
    for index = position, count - 1 do
      rawset(list, index, rawget(list, index + 1))
      moved[index] = positions[index + 1]
    end
    rawset(list, count, nil)
    renew(list, count - 1, moved)
    return removed
  end

  -- table.sort for an array with nulls: the comparison meets nil.
  function M.sort(list, compare)
    local count, copy, positions = length(list), {}, {}
    for index = 1, count do copy[index] = rawget(list, index) end
    sort(setmetatable(copy, { __len = function() return count end }), compare)
    for index = 1, count do
      local value = rawget(copy, index)
      rawset(list, index, value)
      if value == nil then positions[index] = true end
    end
    renew(list, count, positions)
  end

  -- The step of ipairs over an array with nulls: every index, also where the value is nil.
  local function each(list, index)
    index = index + 1
    local value = list[index]
    if value ~= nil or is_array(list) and index <= length(list) then return index, value end
  end
  M.each = each

  -- `pairs` over an array with nulls: its keys in order, also those of its nulls.
  function M.each_pair(list)
    local present = {}
    for index = 1, length(list) do present[index] = true end
    for key in next, list do present[key] = true end
    local step, walk, first = order.each(present)
    local positions = getmetatable(list)[POSITIONS]
    return function(_, key)
      repeat key = step(walk, key) until key == nil or rawget(list, key) ~= nil or positions[key]
      if key ~= nil then return key, rawget(list, key) end
    end, list, first
  end

  -- Both --------------------------------------------------------------------------------------------------------------

  -- The length of an array with nulls, or nil; and the set of an object's null fields, or nil.
  function M.of(value)
    local meta = getmetatable(value)
    if meta == nil or rawequal(meta, ARRAY) then return nil, nil end
    local fields = rawget(meta, FIELDS)
    if fields then return nil, fields end
    if rawget(meta, POSITIONS) then return length(value), nil end
    meta = beneath[value]
    if meta == nil then return nil, nil end
    return meta[POSITIONS] and meta[COUNT], meta[FIELDS]
  end

  M.FIELDS, M.POSITIONS, M.COUNT = FIELDS, POSITIONS, COUNT -- for the native encoder

  function M.is_mark(meta) return rawget(meta, FIELDS) ~= nil or rawget(meta, POSITIONS) ~= nil end

  -- rawset of a script: like an assignment, without the script's own metatable.
  function M.rawset(target, key, value)
    local meta = type(target) == "table" and getmetatable(target)
    if meta and rawget(target, key) == nil then
      if rawget(meta, FIELDS) then newindex(target, key, value) return target end
      if rawget(meta, POSITIONS) then set(target, key, value) return target end
    end
    return rawset(target, key, value)
  end

  -- setmetatable of a script: the list of nulls stays known.
  function M.setmetatable(value, meta)
    local before = getmetatable(value)
    if before ~= nil and M.is_mark(before) then
      if meta == nil then return value end
      beneath[value] = before
    elseif meta == nil then
      meta = beneath[value]
      beneath[value] = nil
    end
    return setmetatable(value, meta)
  end

  return M
end
