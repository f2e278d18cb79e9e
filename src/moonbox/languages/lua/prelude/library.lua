-- The standard library as scripts see it: checked, deterministic, and sealed against change.
return function(host, allowed, stop, order, nulls)
  local type, tostring, tonumber, select, next, rawget = type, tostring, tonumber, select, next, rawget
  local rawequal = rawequal
  local setmetatable, getmetatable, raw_error = setmetatable, debug.getmetatable, error
  local find, gsub, raw_format, raw_rep, sub = string.find, string.gsub, string.format, string.rep, string.sub
  local concat, unpack, pack, move = table.concat, table.unpack, table.pack, table.move
  local raw_pairs = pairs

  local M = {}
  local limits = { max_string = math.huge }
  local sealed = setmetatable({}, { __mode = "k" }) -- proxy -> contents
  local names = setmetatable({}, { __mode = "k" }) -- proxy -> name

  function M.configure(values) limits = values end

  local script_tostring

  -- A table that scripts can read and iterate but not change.
  local function seal(contents, name, extra)
    local proxy = {}
    local meta = extra or {}
    meta.__index = meta.__index or contents
    meta.__newindex = function(_, key)
      raw_error("the table '" .. name .. "' is read-only: keep '" .. script_tostring(key) .. "' in a variable of your own", 2)
    end
    meta.__metatable = false
    meta.__name = "library " .. name -- what Lua calls it in messages
    sealed[proxy], names[proxy] = contents, name
    return setmetatable(proxy, meta)
  end
  M.seal = seal

  function M.is_sealed(value) return sealed[value] ~= nil end

  -- What messages call a value's type.
  function M.kind(value)
    if rawequal(value, host.null) then return "null" end
    return names[value] and "library " .. names[value] or type(value)
  end
  host.kind = M.kind

  -- Addresses would differ from run to run; numbers in the order of first use do not.
  local ids, last_id = setmetatable({}, { __mode = "k" }), 0
  function script_tostring(value)
    local kind = type(value)
    if kind == "table" or kind == "function" or kind == "thread" then
      local meta = getmetatable(value)
      if names[value] then return "library '" .. names[value] .. "'" end
      if meta and rawget(meta, "__tostring") then return tostring(value) end
      local id = ids[value]
      if not id then
        last_id = last_id + 1
        id = last_id
        ids[value] = id
      end
      return raw_format("%s: 0x%06x", kind, id)
    end
    return tostring(value)
  end
  M.tostring = script_tostring

  local function checked_string(text)
    if #text > limits.max_string then
      stop.stop("string", raw_format("a string of %d bytes was made; max_string is %d", #text, limits.max_string))
    end
    return text
  end
  M.checked = checked_string

  local MANY_REPEATS = 200
  local replaced = { string = {}, table = {}, math = {}, os = {} }

  function replaced.string.rep(text, count, separator)
    if type(text) == "number" then text = tostring(text) end
    if type(separator) == "number" then separator = tostring(separator) end
    local whole = math.tointeger(count)
    if type(text) == "string" and whole and whole > 0 and (separator == nil or type(separator) == "string") then
      local size = (#text + (separator and #separator or 0)) * (whole + 0.0)
      if size == 0 then return "" end -- C would loop `whole` times, and nothing could stop it
      if size > limits.max_string + (separator and #separator or 0) then
        stop.stop("string", raw_format("string.rep would make a string of %.0f bytes; max_string is %d", size, limits.max_string))
      end
      if whole >= MANY_REPEATS and not separator then -- fewer and larger copies in C
        for block = math.min(256, math.floor(whole ^ 0.5)), 2, -1 do
          if whole % block == 0 then return raw_rep(raw_rep(text, block), whole // block) end
        end
      end
    end
    return raw_rep(text, count, separator)
  end

  function replaced.string.gsub(text, pattern, replacement, count)
    local result, n = gsub(text, pattern, replacement, count)
    return checked_string(result), n
  end

  local function printable(...)
    local n = select("#", ...)
    for index = 1, n do
      local kind = type((select(index, ...)))
      if kind == "table" or kind == "function" or kind == "thread" then
        local values = pack(...)
        for position = 1, n do
          local of = type(values[position])
          if of == "table" or of == "function" or of == "thread" then
            values[position] = script_tostring(values[position])
          end
        end
        return unpack(values, 1, n)
      end
    end
    return ...
  end

  function replaced.string.format(form, ...)
    if type(form) == "string" and find(form, "p", 1, true) and find(gsub(form, "%%%%", ""), "%%[-+ #0-9.]*p") then
      raw_error("string.format: the option '%p' is not available", 2)
    end
    return (checked_string(raw_format(form, printable(...))))
  end

  local raw_pack = string.pack
  function replaced.string.pack(...)
    return (checked_string(raw_pack(...)))
  end

  function replaced.table.concat(list, separator, first, last)
    return (checked_string(concat(list, separator, first, last)))
  end

  -- In arrays with nulls, nulls move with the other elements.
  local raw_insert, raw_remove, raw_sort = table.insert, table.remove, table.sort
  local is_array, tointeger = nulls.is_array, math.tointeger
  function replaced.table.insert(list, ...)
    if getmetatable(list) and is_array(list) and select("#", ...) == 2 then
      local position = tointeger((...))
      if position and position >= 1 and position <= #list then
        nulls.insert(list, position, (select(2, ...)))
        return
      end
    end
    return raw_insert(list, ...)
  end

  function replaced.table.remove(list, position)
    if position ~= nil and getmetatable(list) and is_array(list) then
      local whole = tointeger(position)
      if whole and whole >= 1 and whole < #list then return (nulls.remove(list, whole)) end
    end
    return raw_remove(list, position)
  end

  function replaced.table.sort(list, compare)
    if is_array(list) and (compare == nil or type(compare) == "function") then
      nulls.sort(list, compare)
      return
    end
    return raw_sort(list, compare)
  end

  function replaced.table.move(from, first, last, to, into)
    local a, b = math.tointeger(first), math.tointeger(last)
    if a and b and b - a > 10000000 then
      raw_error("bad argument #3 to 'move' (more than 10 million elements)", 2)
    end
    if into == nil then return move(from, first, last, to) end
    return move(from, first, last, to, into)
  end

  -- The seed of random numbers comes from the host and is in the Run.
  local raw_seed, run_seed = math.randomseed, 0
  function M.seed(seed)
    run_seed = seed
    raw_seed(seed)
  end
  function replaced.math.randomseed(...)
    if select("#", ...) == 0 then
      raw_seed(run_seed)
    else
      raw_seed(...)
    end
  end

  -- Times come from the host and are in the Run.
  local raw_date = os.date
  local function field(parts, name, default)
    local value = parts[name]
    local whole = math.tointeger(value)
    if value == nil and default then return default end
    if value == nil then raw_error("field '" .. name .. "' missing in date table", 3) end
    if not whole then raw_error("field '" .. name .. "' is not an integer", 3) end
    if whole < -2 ^ 31 or whole >= 2 ^ 31 then raw_error("field '" .. name .. "' is out-of-bound", 3) end
    return whole
  end

  -- UTC, like os.date here: scripts do not see the machine's time zone. Normalizes the fields.
  function replaced.os.time(parts)
    if parts == nil then return host.clock("time") end
    if type(parts) ~= "table" then raw_error("bad argument #1 to 'time' (table expected, got " .. M.kind(parts) .. ")", 2) end
    local month = field(parts, "month") - 1
    local year = field(parts, "year") + month // 12
    month = month % 12 + 1
    local y = month <= 2 and year - 1 or year -- years from March, so that the leap day is the last
    local in_era = y % 400
    local day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + field(parts, "day") - 1
    local days = y // 400 * 146097 + in_era * 365 + in_era // 4 - in_era // 100 + day_of_year - 719468
    local moment = days * 86400 + field(parts, "hour", 12) * 3600 + field(parts, "min", 0) * 60 + field(parts, "sec", 0)
    for name, value in next, raw_date("!*t", moment) do parts[name] = value end
    return moment
  end
  function replaced.os.clock()
    return host.clock("clock")
  end
  function replaced.os.date(form, moment)
    if form == nil then form = "%c" end
    if type(form) == "string" and sub(form, 1, 1) ~= "!" then form = "!" .. form end
    if moment == nil then moment = host.clock("time") end
    local made = raw_date(form, moment)
    return type(made) == "string" and checked_string(made) or made
  end

  -- For `__index`: reading a field that a list or a string cannot have is an error, not nil. Names of methods in other
  -- languages are nil, so that Lua's own message names the method that was called.
  local methods = {}
  for _, name in next, allowed.methods do methods[name] = true end
  function M.no_field(kind)
    return function(_, key)
      if type(key) == "string" and not methods[key] then
        raw_error("a " .. kind .. " has no field '" .. (#key <= 100 and key or sub(key, 1, 100) .. "...") .. "'", 2)
      elseif kind == "string" and type(key) == "number" then
        raw_error("a string has no element " .. key, 2)
      end
    end
  end

  local libraries = {}
  for name, members in next, allowed.libraries do
    local contents = {}
    for _, member in next, members do
      contents[member] = replaced[name] and replaced[name][member] or _G[name][member]
    end
    libraries[name] = seal(contents, name)
    if name == "string" then
      local meta = getmetatable("")
      local own = {}
      for member, fn in next, contents do own[member] = fn end
      local fallback = { __index = M.no_field("string") }
      meta.__index = setmetatable(own, fallback)
      -- For the runtime of another language, which has its own message for a missing field.
      function M.let_strings_be() fallback.__index = nil end
      meta.__metatable = false
      meta.__name = nil
    end
  end
  M.libraries = libraries

  local base = {}
  for _, name in next, allowed.base do base[name] = _G[name] end
  base.tostring = script_tostring

  base.next = order.next
  local each = order.each
  function base.pairs(value)
    local meta = getmetatable(value)
    if type(value) == "table" and (meta == nil or rawequal(meta, host.array)) then return each(value) end
    local contents = sealed[value]
    if contents then
      local own = rawget(meta, "__pairs")
      if own then return own() end
      local copy = {} -- the contents themselves could be changed
      for key, member in next, contents do copy[key] = member end
      return each(copy)
    end
    if value == nil or value == host.null then
      raw_error("bad argument #1 to 'pairs' (table expected, got " .. M.kind(value) .. ")", 2)
    end
    if is_array(value) then return nulls.each_pair(value) end
    if type(value) ~= "table" or rawget(meta, "__pairs") ~= nil then return raw_pairs(value) end
    return each(value)
  end

  -- Lua's ipairs would accept any value and fail at the first step with a message about an index.
  local first_step, null = ipairs({}), host.null
  function base.ipairs(value)
    if value == nil or value == null then
      raw_error("bad argument #1 to 'ipairs' (table expected, got " .. M.kind(value) .. ")", 2)
    end
    if is_array(value) then return nulls.each, value, 0 end
    return first_step, value, 0
  end

  function base.rawset(target, key, value)
    if sealed[target] then raw_error("this table is read-only", 2) end
    return (nulls.rawset(target, key, value))
  end

  local raw_rawlen = rawlen
  function base.rawlen(value)
    if is_array(value) then return #value end
    return raw_rawlen(value)
  end

  M.base = base
  return M
end
