-- Properties and indexes: read, written, and written back.
return function(R, lib, host)
  local type = lib.type
  local number_type, most = lib.math.type, lib.math.maxinteger
  local sub, format = lib.string.sub, lib.string.format
  local offset, utf8_len = lib.utf8.offset, lib.utf8.len
  local getmetatable = lib.debug.getmetatable
  local U, kind_of = R.U, R.kind_of
  local RANGE_INCLUSIVE = R.RANGE_INCLUSIVE

  -- The index of an element from 0, counted from the end when negative; nil if there is none.
  local function calc_index(length, index)
    if index < 0 then
      if index < -length then return nil end
      return length + index
    end
    return index < length and index or nil
  end
  R.calc_index = calc_index

  local function is_range(value)
    local kind = kind_of(value)
    return kind == "range" or kind == "range="
  end
  R.is_range = is_range

  -- The place of an element in an array or in the bytes of a blob, from 1. `range_hint` is for a key that is a range.
  local function element(list, key, key_pos, range_hint)
    if number_type(key) ~= "integer" then R.mismatch(key, "i64", key_pos, is_range(key) and range_hint or nil) end
    local at = calc_index(#list, key)
    if not at then R.array_bounds(#list, key, key_pos) end
    return at + 1
  end

  -- Bits

  -- The number of a bit, from 0.
  local function bit_at(index, pos)
    local bit = calc_index(64, index)
    if not bit then R.bit_bounds(index, pos) end
    return bit
  end
  R.bit_at = bit_at

  local function bit_span(range, pos)
    local from, to = range[true], range[false]
    local inclusive = getmetatable(range) == RANGE_INCLUSIVE
    if to == most then to = inclusive and 63 or 64 end
    local start = bit_at(from, pos)
    local stop = inclusive and bit_at(to, pos) + 1 or to == 64 and 64 or bit_at(to, pos)
    if stop <= start then return 0, 0 end
    if stop - start == 64 then return 0, -1 end
    return start, ((1 << (stop - start)) - 1) << start
  end

  -- Strings

  local function string_char(text, index, pos)
    local start
    if index >= 0 then
      start = index < #text and offset(text, index + 1)
      if start and start > #text then start = nil end
    else
      start = index >= -#text and offset(text, index)
    end
    if not start then R.string_bounds(utf8_len(text) or #text, index, pos) end
    return start, offset(text, 2, start) - 1
  end

  -- The bytes of a slice: first and last, and that one after the end of the slice.
  local function string_span(text, range, pos)
    local count = utf8_len(text) or #text
    if count == 0 then return 1, 0 end
    local from, to = range[true], range[false]
    if from < 0 then
      local start = calc_index(count, from)
      if not start then R.string_bounds(count, from, pos) end
      from = start
    end
    if to < 0 then to = calc_index(count, to) or 0 end
    local stop
    if getmetatable(range) == RANGE_INCLUSIVE then
      if from == 0 and to >= count - 1 then return 1, #text end
      stop = to > from and (to < count and to + 1 or count) or from
    else
      stop = to < count and to or count
    end
    if from >= count then return #text + 1, #text end
    if stop <= from then
      local at = offset(text, from + 1)
      return at, at - 1
    end
    return offset(text, from + 1), offset(text, stop + 1) - 1
  end

  -- Reading

  function R.idx(base, key, key_pos, op_pos)
    local kind = kind_of(base)
    local is_int = number_type(key) == "integer"
    if kind == "array" then
      local at = is_int and calc_index(#base, key) -- not by `element`: this is what most indexes are
      if at then return base[at + 1] end
      element(base, key, key_pos, "take a part of an array with list.extract(1..3)")
    elseif kind == "map" then
      if type(key) ~= "string" then R.mismatch(key, "string", key_pos, "keys of maps are text: write map[`${key}`]") end
      local value = base[key]
      if value == nil then return U end
      return value
    elseif kind == "string" then
      if is_int then
        local start, stop = string_char(base, key, key_pos)
        return R.char(sub(base, start, stop))
      end
      if not is_range(key) then R.mismatch(key, "i64", key_pos) end
      local first, last = string_span(base, key, key_pos)
      return sub(base, first, last)
    elseif kind == "i64" then
      if is_range(key) then
        local shift, mask = bit_span(key, key_pos)
        local bits = base & mask
        return shift == 0 and bits or R.operate(">>", bits, shift, op_pos)
      end
      if not is_int then R.mismatch(key, "i64", key_pos) end
      return base & (1 << bit_at(key, key_pos)) ~= 0
    elseif kind == "blob" then
      return base[true][element(base[true], key, key_pos)]
    end
    R.no_indexer(op_pos, base, key)
  end

  local getters = {}
  R.getters = getters
  local property_hints = {
    length = "the number of elements is .len", size = "the number of elements is .len", count = "the number of elements is .len",
  }

  function R.prop(base, name, pos)
    local kind = kind_of(base)
    if kind == "map" then
      local value = base[name]
      if value == nil then return U end
      return value
    end
    local getter = getters[kind] and getters[kind][name]
    if getter then return getter(base) end
    if name == "tag" then return 0 end
    local message = format("Unknown property '%s' - a getter is not registered for type '%s'", name, R.type_of(base))
    local hint = property_hints[name] or (kind == "()" and "the value is (): use ?. where something may be missing") or nil
    R.raise("ErrorDotExpr", message, pos, { property = message }, hint)
  end

  -- Writing. What is written into a string or an integer makes a new one, which is returned; else nil is.

  local function store_string(base, key, value, key_pos, eq_pos)
    local first, last
    if is_range(key) then
      first, last = string_span(base, key, key_pos)
      if type(value) ~= "string" then R.mismatch(value, "string", eq_pos) end
    elseif number_type(key) == "integer" then
      first, last = string_char(base, key, key_pos)
      if not R.is_char(value) then R.mismatch(value, "char", eq_pos) end
      value = value[true]
    else
      R.mismatch(key, "i64", key_pos)
    end
    local result = sub(base, 1, first - 1) .. value .. sub(base, last + 1)
    if #result > R.max_string then R.too_large("string", eq_pos) end
    return result
  end

  local function store_bits(base, key, value, key_pos, eq_pos)
    if is_range(key) then
      local shift, mask = bit_span(key, key_pos)
      if number_type(value) ~= "integer" then R.mismatch(value, "i64", eq_pos) end
      return base & ~mask | (value << shift) & mask
    end
    if number_type(key) ~= "integer" then R.mismatch(key, "i64", key_pos) end
    local bit = bit_at(key, key_pos)
    if type(value) ~= "boolean" then R.mismatch(value, "bool", eq_pos) end
    return value and base | (1 << bit) or base & ~(1 << bit)
  end

  local function store_property(base, name, value, pos)
    if name == "tag" then return end
    local message = format("No writable property '%s' - a setter is not registered for type '%s' to handle '%s'",
      name, R.type_of(base), R.type_of(value))
    local hint = kind_of(base) == "()" and "the map above it has no such property yet: set it to #{} first" or nil
    R.raise("ErrorDotExpr", message, pos, { property = message }, hint)
  end

  local function store_map(base, key, value, eq_pos)
    if base[key] == nil then base[true] = base[true] + 1 end
    base[key] = value
    R.check_growth(base, eq_pos, value)
  end

  local function store(base, key, value, is_property, key_pos, op_pos, eq_pos)
    local kind = kind_of(base)
    if kind == "map" then
      if type(key) ~= "string" then R.mismatch(key, "string", key_pos, "keys of maps are text: write map[`${key}`]") end
      return store_map(base, key, value, eq_pos)
    end
    if is_property then return store_property(base, key, value, key_pos) end
    if kind == "array" then
      base[element(base, key, key_pos)] = value
      R.check_value(value, eq_pos)
    elseif kind == "string" then
      return store_string(base, key, value, key_pos, eq_pos)
    elseif kind == "i64" then
      return store_bits(base, key, value, key_pos, eq_pos)
    elseif kind == "blob" then
      local at = element(base[true], key, key_pos)
      if number_type(value) ~= "integer" then R.mismatch(value, "i64", eq_pos) end
      base[true][at] = value & 0xFF
    else
      R.no_indexer(op_pos, base, key, value)
    end
  end
  R.store = store

  function R.op_store(base, key, op, value, is_property, key_pos, op_pos, eq_pos)
    local kind = kind_of(base)
    local old
    if kind == "map" and type(key) == "string" then
      old = base[key]
      if old == nil then
        old = U
        store_map(base, key, U, eq_pos)
      end
    elseif is_property then
      old = R.prop(base, key, key_pos)
    else
      old = R.idx(base, key, key_pos, op_pos)
    end
    return store(base, key, R.assign(op, old, value, eq_pos), is_property, key_pos, op_pos, eq_pos)
  end

  -- A changed value goes into what holds it; what remains to be stored at the root is returned.
  function R.back(changed, pos, ...)
    local path = { ... }
    for i = 1, #path, 2 do
      local base, key = path[i], path[i + 1]
      local kind = kind_of(base)
      if kind == "array" or kind == "map" or kind == "string" or kind == "i64" or kind == "blob" then
        changed = store(base, key, changed, kind == "map", pos, pos, pos)
        if changed == nil then return nil end
      else
        return nil
      end
    end
    return changed
  end

  function R.push(array, item, pos)
    array[#array + 1] = item
    R.check_growth(array, pos, item)
  end
end
