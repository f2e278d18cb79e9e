-- Values: how each Rhai type is held in Lua, how it is copied and measured.
--
--   i64, f64, bool, string   integer, float, boolean, string
--   array                    table of elements 1..n; map: table of its entries, and [true] = how many
--   (), char, Fn, range, range=, blob, timestamp, iterator: tables whose contents are under the keys true and false,
--   which no script can name
--
-- Every type has a metatable. Lua's operators on anything but two numbers then give nil, which sends compiled code to the
-- slow way; reading a field of anything but a map gives nil, with the same effect.
return function(R, lib, host)
  local type, setmetatable, next = lib.type, lib.setmetatable, lib.next
  local number_type, huge = lib.math.type, lib.math.maxinteger
  local getmetatable = lib.debug.getmetatable
  local move = lib.table.move

  local function nothing() end
  local function new_type(name)
    return { __name = name, __add = nothing, __sub = nothing, __mul = nothing, __div = nothing, __mod = nothing, __idiv = nothing }
  end

  local ARRAY, MAP, UNIT, CHAR = new_type("array"), new_type("map"), new_type("()"), new_type("char")
  local FN, RANGE, RANGE_INCLUSIVE = new_type("Fn"), new_type("range"), new_type("range=")
  local BLOB, TIME, ITERATOR = new_type("blob"), new_type("timestamp"), new_type("iterator")
  R.types = { ARRAY, MAP, UNIT, CHAR, FN, RANGE, RANGE_INCLUSIVE, BLOB, TIME, ITERATOR }
  R.ARRAY, R.MAP, R.CHAR, R.FN, R.BLOB, R.TIME = ARRAY, MAP, CHAR, FN, BLOB, TIME
  R.RANGE, R.RANGE_INCLUSIVE = RANGE, RANGE_INCLUSIVE
  R.number_type, R.pcall = number_type, lib.pcall

  -- The primitive types of this Lua state belong to Rhai from here on.
  local string_type = getmetatable("") or {}
  for _, event in next, { "__add", "__sub", "__mul", "__div", "__mod", "__idiv", "__pow", "__unm" } do
    string_type[event] = nothing
  end
  local boolean_type = new_type("bool")
  boolean_type.__index = {}
  lib.debug.setmetatable("", string_type)
  lib.debug.setmetatable(true, boolean_type)
  lib.debug.setmetatable(0, { __index = {} })
  R.string_type, R.boolean_type = string_type, boolean_type

  local U = setmetatable({}, UNIT)
  R.U = U

  -- The limits, which the host may change between runs; `max_map` is that of arrays unless the host sets another.
  function R.use_limits()
    local limits = host.limits or {}
    R.max_string = limits.max_string or huge
    R.max_array = limits.max_array or huge
    R.max_map = limits.max_map or R.max_array
    R.max_depth = limits.max_depth or 64
    R.limited = limits.max_string ~= nil or limits.max_array ~= nil or limits.max_map ~= nil
  end
  R.use_limits()

  local chars = setmetatable({}, { __mode = "v" })
  -- The character of that UTF-8 text. There is only one of each, so that they can be compared by identity.
  function R.char(text)
    local char = chars[text]
    if not char then
      char = setmetatable({ [true] = text }, CHAR)
      chars[text] = char
    end
    return char
  end

  function R.array(items) return setmetatable(items, ARRAY) end
  function R.map(entries) return setmetatable(entries, MAP) end
  function R.blob(bytes) return setmetatable({ [true] = bytes }, BLOB) end
  function R.timestamp(seconds) return setmetatable({ [true] = seconds }, TIME) end

  -- A range of integers; an end that is left out is the largest integer.
  function R.new_range(from, to, inclusive)
    return setmetatable({ [true] = from, [false] = to }, inclusive and RANGE_INCLUSIVE or RANGE)
  end

  -- Something that `for` goes through: elements by number, and how many there are.
  function R.iterator(name, items, count)
    return setmetatable({ [true] = items, [false] = { count = count, name = name } }, ITERATOR)
  end

  local kinds = {}
  for _, meta in next, R.types do kinds[meta] = meta.__name end
  -- The type of a value, as Rhai names it.
  local function kind_of(value)
    local lua = type(value)
    if lua == "table" then return kinds[getmetatable(value)] or "unknown" end
    if lua == "number" then return number_type(value) == "integer" and "i64" or "f64" end
    if lua == "boolean" then return "bool" end
    return lua == "string" and "string" or "unknown"
  end
  R.kind_of = kind_of
  function R.type_of(value)
    local kind = kind_of(value)
    return kind == "iterator" and value[false].name or kind
  end

  function R.is_array(value) return type(value) == "table" and getmetatable(value) == ARRAY end
  function R.is_map(value) return type(value) == "table" and getmetatable(value) == MAP end
  function R.is_char(value) return type(value) == "table" and getmetatable(value) == CHAR end
  function R.is_fn(value) return type(value) == "table" and getmetatable(value) == FN end
  function R.is_blob(value) return type(value) == "table" and getmetatable(value) == BLOB end
  function R.is_int(value) return number_type(value) == "integer" end

  -- A copy that shares nothing that can be changed.
  local function copy(value)
    if type(value) ~= "table" then return value end
    local meta = getmetatable(value)
    if meta == ARRAY then
      local count = #value
      local result = move(value, 1, count, 1, {})
      for i = 1, count do
        local item = result[i]
        if type(item) == "table" then result[i] = copy(item) end
      end
      return setmetatable(result, ARRAY)
    elseif meta == MAP then
      local result = {}
      for key, item in next, value do
        if type(item) == "table" then item = copy(item) end
        result[key] = item
      end
      return setmetatable(result, MAP)
    elseif meta == BLOB then
      local bytes = value[true]
      return setmetatable({ [true] = move(bytes, 1, #bytes, 1, {}) }, BLOB)
    end
    return value
  end
  R.copy = copy

  -- Elements of arrays, entries of maps and bytes of strings in a value, at all levels.
  local function sizes(value)
    if type(value) == "string" then return 0, 0, #value end
    if type(value) ~= "table" then return 0, 0, 0 end
    local meta = getmetatable(value)
    local arrays, maps, strings = 0, 0, 0
    if meta == ARRAY then
      arrays = #value
      for i = 1, arrays do
        local item = value[i]
        local lua = type(item)
        if lua == "string" then
          strings = strings + #item
        elseif lua == "table" then
          local a, m, s = sizes(item)
          if getmetatable(item) == BLOB then a = a + 1 end
          arrays, maps, strings = arrays + a, maps + m, strings + s
        end
      end
    elseif meta == MAP then
      maps = value[true]
      for key, item in next, value do
        if key ~= true then
          local a, m, s = sizes(item)
          arrays, maps, strings = arrays + a, maps + m, strings + s
        end
      end
    elseif meta == BLOB then
      arrays = #value[true]
    end
    return arrays, maps, strings
  end
  R.sizes = sizes
end
