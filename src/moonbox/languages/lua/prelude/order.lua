-- The order of a table's keys, the same in every process and on every host: integers ascending, other numbers, strings in
-- byte order, false, true, null. Tables, functions and coroutines come last, in no fixed order.
--
-- A traversal goes through the keys that the table has when it begins. Fields that the script removes meanwhile are left out,
-- as Lua does it; fields that it adds are not visited.
return function(host)
  local type, next, rawget, rawequal, raw_error = type, next, rawget, rawequal, error
  local setmetatable, getmetatable = setmetatable, debug.getmetatable
  local sort, move, mtype = table.sort, table.move, math.type
  local wrap, yield = coroutine.wrap, coroutine.yield
  local MOST_FIELDS, LONGEST_NAME, MOST_SHAPES = 16, 40, 32
  local function EDGE() end -- in a table of successors, before the first key and after the last; no __eq is asked about it

  local M = {}

  -- Sorting ----------------------------------------------------------------------------------------------------------

  -- A table that is a sequence or has one key. Others are in order by chance only, which differs from process to process.
  local function is_in_order(t)
    local index = 0
    for key in next, t do
      index = index + 1
      if key ~= index then return index == 1 and next(t, key) == nil end
    end
    return true
  end

  -- Lists of the keys of each kind, in the order of the kinds.
  local function by_kind(t)
    local integers, floats, names, truths, others = {}, {}, {}, {}, {}
    for key in next, t do
      local kind = type(key)
      local list = kind == "string" and names or mtype(key) == "integer" and integers or kind == "number" and floats or others
      if kind == "boolean" or rawequal(key, host.null) then
        truths[key == false and 1 or key == true and 2 or 3] = key
      else
        list[#list + 1] = key
      end
    end
    sort(integers)
    sort(floats)
    sort(names)
    for place = 1, 3 do names[#names + 1] = truths[place] end
    return integers, floats, names, others
  end

  -- The keys of a table as a list; nil where `next` goes through them in the same order. With `least`, the first key only.
  local arrange = host.arrange or function(t, least)
    if is_in_order(t) then
      if least then return (next(t)) end
      return nil
    end
    local keys, floats, names, others = by_kind(t)
    move(floats, 1, #floats, #keys + 1, keys)
    move(names, 1, #names, #keys + 1, keys)
    move(others, 1, #others, #keys + 1, keys)
    if least then return keys[1] end
    return keys
  end

  -- Traversals -------------------------------------------------------------------------------------------------------

  local function successors(keys)
    local after, last = {}, EDGE
    for index = 1, #keys do
      after[last] = keys[index]
      last = keys[index]
    end
    after[last] = EDGE
    return after
  end

  -- The step of a traversal, like `next`; `get` is for tables with __index.
  local function stepper(after, get)
    if get then
      return function(t, key)
        if key == nil then key = EDGE end
        local value
        repeat
          key = after[key]
          if key == EDGE or key == nil then return nil end
          value = get(t, key)
        until value ~= nil
        return key, value
      end
    end
    return function(t, key)
      if key == nil then key = EDGE end
      local value
      repeat
        key = after[key]
        if key == EDGE or key == nil then return nil end
        value = t[key]
      until value ~= nil
      return key, value
    end
  end

  -- Sets of fields that records had: many records have the same. first key, as Lua has it -> {after, size, step}
  local shapes, known = {}, 0

  local function keep_shape(first, keys, after, step)
    if #keys > MOST_FIELDS then return end
    for index = 1, #keys do
      if type(keys[index]) ~= "string" or #keys[index] > LONGEST_NAME then return end
    end
    if shapes[first] == nil then
      if known == MOST_SHAPES then shapes, known = {}, 0 end
      known = known + 1
    end
    shapes[first] = { after, #keys, step }
  end

  -- What a generic `for` needs to go through `t`, without metamethods.
  local function traversal(t)
    local first = next(t)
    local shape = shapes[first]
    local meta = getmetatable(t)
    local get = meta and rawget(meta, "__index") ~= nil and rawget or nil
    if shape and not get then
      local after, size = shape[1], 0
      for key in next, t do
        if not after[key] then
          size = nil
          break
        end
        size = size + 1
      end
      if size == shape[2] then return shape[3], t, nil end
    end
    local keys = arrange(t, false)
    if not keys then return next, t, nil end
    local after = successors(keys)
    local step = stepper(after, get)
    if not get then keep_shape(first, keys, after, step) end
    return step, t, nil
  end

  local walks = setmetatable({}, { __mode = "k" }) -- table -> the successors of its latest traversal by `next`

  -- The successors of the keys of `t`, among which is `key`; nil where it is not. A traversal may have removed its first key.
  local function walk_with(t, key)
    local walk = walks[t]
    if walk and walk[key] ~= nil then return walk end
    local after = successors(arrange(t, false) or { (next(t)) })
    if after[key] == nil then
      if not walk or not rawequal(walk[EDGE], key) then return nil end
      after[key] = after[EDGE]
    end
    walks[t] = after
    return after
  end

  -- The key after `key`, and its value; EDGE for a key that is not there.
  local function following(t, key)
    local after = walk_with(t, key)
    if not after then
      if mtype(key) == "integer" and key > 0 and not arrange(t, false) then return nil end -- the end of a sequence
      return EDGE
    end
    local value
    repeat
      key = after[key]
      if rawequal(key, EDGE) then
        walks[t] = nil
        return nil
      end
      value = rawget(t, key)
    until value ~= nil
    return key, value
  end

  local begin, advance, least = traversal, following, arrange

  -- A function that runs in a coroutine of its own, which has no hook.
  local function apart(f)
    local function work(...) return work(yield(f(...))) end
    return wrap(work)
  end

  -- Where operations are counted, only the steps of traversals are: the rest is native on other hosts.
  function M.begin(counting)
    if counting then
      begin, advance, least = apart(traversal), apart(following), apart(arrange)
    elseif begin ~= traversal then
      begin, advance, least = traversal, following, arrange
    end
  end

  function M.each(t) return begin(t) end

  function M.next(t, key)
    if type(t) ~= "table" then raw_error("bad argument #1 to 'next' (table expected, got " .. host.kind(t) .. ")", 2) end
    if key == nil then
      key = least(t, true)
      walks[t] = key ~= nil and { [EDGE] = key } or nil
      if key == nil then return nil end
      return key, rawget(t, key)
    end
    if mtype(key) == "integer" then -- a sequence needs no walk
      local value = rawget(t, key + 1)
      if value ~= nil and key + 1 > key then return key + 1, value end
    end
    local value
    key, value = advance(t, key)
    if rawequal(key, EDGE) then raw_error("invalid key to 'next'", 2) end
    return key, value
  end

  return M
end
