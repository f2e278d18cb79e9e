-- The order of a table's keys, the same in every process and on every host: integers ascending, other numbers, strings in
-- byte order, false, true, null. Tables, functions and coroutines come last, in no fixed order.
--
-- A traversal goes through the keys that the table has when it begins. Fields that the script removes meanwhile are left out,
-- as Lua does it; fields that it adds are not visited. A large table is traversed as Lua has it when no memory is left for its keys,
-- so that a script can free memory.
return function(host)
  local type, next, rawget, rawequal, raw_error = type, next, rawget, rawequal, error
  local setmetatable, getmetatable = setmetatable, debug.getmetatable
  local sort, move, concat, mtype = table.sort, table.move, table.concat, math.type
  local wrap, yield = coroutine.wrap, coroutine.yield
  local collect, raw_pcall = collectgarbage, pcall
  local MOST_FIELDS, LONGEST_NAME, MOST_SHAPES, MANY = 16, 40, 32, 1000
  local FIRST = 1 -- in a table of successors, before the first name

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

  local memory_soft = math.huge
  function M.configure(limits) memory_soft = limits.memory_soft end

  -- Whether there is memory for lists of the keys.
  local function has_room(t)
    local count = 0
    for _ in next, t do count = count + 1 end
    if count < MANY or collect("count") * 1024 + count * 40 < memory_soft then return true end
    collect()
    return collect("count") * 1024 + count * 40 < memory_soft
  end

  -- The keys of a table as a list; nil where `next` goes through them in the same order, false where there is no memory for the
  -- list. With `least`, the first key only.
  local arrange = host.arrange or function(t, least)
    if is_in_order(t) then
      if least then return (next(t)) end
      return nil
    end
    if not has_room(t) then
      if least then return (next(t)) end
      return false
    end
    local integers, floats, names, others = by_kind(t)
    local keys = integers
    if #integers + #floats == 0 then
      keys = names -- mostly these alone, and memory may be scarce
    else
      move(floats, 1, #floats, #keys + 1, keys)
      move(names, 1, #names, #keys + 1, keys)
    end
    move(others, 1, #others, #keys + 1, keys)
    if least then return keys[1] end
    return keys
  end

  -- Traversals -------------------------------------------------------------------------------------------------------

  -- Where a key is in a list, which is mostly at `guess`; nil where it is not.
  local function position(keys, key, guess)
    if rawequal(keys[guess], key) then return guess end
    for index = 1, #keys do
      if rawequal(keys[index], key) then return index end
    end
  end

  -- The step of a traversal, like `next`; `get` is for tables with __index.
  local function walker(keys, get)
    local at = 0
    return function(t, key)
      at = key == nil and 0 or position(keys, key, at)
      if not at then
        at = 0
        return nil
      end
      local value
      repeat
        at = at + 1
        key = keys[at]
        if key == nil then return nil end
        if get then value = get(t, key) else value = t[key] end
      until value ~= nil
      return key, value
    end
  end

  -- The same for a record: several traversals share it.
  local function stepper(after)
    return function(t, key)
      if key == nil then key = FIRST end
      local value
      repeat
        key = after[key]
        if not key then return nil end
        value = t[key]
      until value ~= nil
      return key, value
    end
  end

  -- Records: a few fields whose keys are all short names. Many have the same fields. Each entry has the first key, as Lua has it,
  -- and {name -> the next name or false, number of fields, step}.
  local shapes, known = {}, 0

  local function is_record(keys)
    if #keys > MOST_FIELDS then return false end
    for index = 1, #keys do
      if type(keys[index]) ~= "string" or #keys[index] > LONGEST_NAME then return false end
    end
    return true
  end

  local function record_step(first, keys)
    local after = { keys[1] }
    for index = 1, #keys do after[keys[index]] = keys[index + 1] or false end
    if shapes[first] == nil then
      if known == MOST_SHAPES then shapes, known = {}, 0 end
      known = known + 1
    end
    local step = stepper(after)
    shapes[first] = { after, #keys, step }
    return step
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
        if after[key] == nil then
          size = nil
          break
        end
        size = size + 1
      end
      if size == shape[2] then return shape[3], t, nil end
    end
    local keys = arrange(t, false)
    if not keys then return next, t, nil end
    if not get and is_record(keys) then return record_step(first, keys), t, nil end
    return walker(keys, get), t, nil
  end

  local walks = setmetatable({}, { __mode = "k" }) -- table -> {keys, position} of its latest traversal by `next`

  -- The walk through `t`, and where `key` is in it; nil where it is not, nil and true where there is no memory for it. A traversal may
  -- have removed its first key.
  local function walk_with(t, key)
    local walk = walks[t]
    local at = walk and walk.keys and position(walk.keys, key, walk.at)
    if at then return walk, at end
    local keys = arrange(t, false)
    if keys == false then return nil, true end
    keys = keys or { (next(t)) }
    at = position(keys, key, 1) or walk and rawequal(walk.first, key) and 0
    if not at then return nil end
    walk = { keys = keys }
    walks[t] = walk
    return walk, at
  end

  -- Whether `key` was there; the key after it, and the value of that.
  local function following(t, key)
    local walk, at = walk_with(t, key)
    if at == true then return raw_pcall(next, t, key) end
    if not walk then return mtype(key) == "integer" and key > 0 and not arrange(t, false) end -- the end of a sequence
    local value
    repeat
      at = at + 1
      key = walk.keys[at]
      if key == nil then
        walks[t] = nil
        return true
      end
      value = rawget(t, key)
    until value ~= nil
    walk.at = at
    return true, key, value
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

  -- The first keys of a table in order, as messages name them.
  function M.names(t, most)
    local names = {}
    for key in begin(t) do
      if #names == most then
        names[#names + 1] = "…"
        break
      end
      names[#names + 1] = host.tostring(key)
    end
    return concat(names, ", ")
  end

  local CALLER = host.next and 3 or 2 -- the level of the script: the native part is between

  function M.next(t, key)
    if type(t) ~= "table" then raw_error("bad argument #1 to 'next' (table expected, got " .. host.kind(t) .. ")", CALLER) end
    if key == nil then
      key = least(t, true)
      walks[t] = key ~= nil and { first = key } or nil
      if key == nil then return nil end
      return key, rawget(t, key)
    end
    if mtype(key) == "integer" then -- a sequence needs no walk
      local value = rawget(t, key + 1)
      if value ~= nil and key + 1 > key then return key + 1, value end
    end
    local found, following_key, value = advance(t, key)
    if not found then raw_error("invalid key to 'next'", CALLER) end
    return following_key, value
  end
  if host.next then M.next = host.next(M.next) end -- the same, faster through sequences

  return M
end
