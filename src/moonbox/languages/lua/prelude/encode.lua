-- Script values as JSON text: for the wire to the host (lossless, packed) and for json.encode (plain JSON).
--
-- On the wire, what JSON lacks is an object with one key that starts with the byte 1:
--   {"\u0001b": "..."}              a string that is not UTF-8, each byte as one character
--   {"\u0001m": [[key, value], …]}  a table whose keys are not all strings (or start with the byte 1)
--   {"\u0001f": "nan"}             a number that is not finite: nan, inf or -inf
return function(host, stop, order, nulls)
  local type, next, rawlen, rawget, rawequal = type, next, rawlen, rawget, rawequal
  local tostring, tonumber = tostring, tonumber
  local getmetatable, raw_error = debug.getmetatable, error
  local find, gsub, format, byte, repeated = string.find, string.gsub, string.format, string.byte, string.rep
  local concat = table.concat
  local mtype, huge = math.type, math.huge
  local ulen, uchar = utf8.len, utf8.char
  local null, ARRAY = host.null, host.array
  local NONE = {}

  local M = {}
  local limits = {}
  local spent = 0 -- elements that the run has sent so far: the host keeps a record of them all
  -- Native encoders for common values: of a list, of their arguments, and of a run's results.
  local native, native_all, native_result
  function M.configure(values)
    limits = values
    local alike = values.max_operations -- counted the same with and without the native part
    native, native_all = not alike and host.encode, not alike and host.encode_all
    native_result = not alike and host.encode_result
  end
  function M.begin() spent = 0 end

  local escapes = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t" }
  for code = 0, 31 do
    local char = string.char(code)
    escapes[char] = escapes[char] or format("\\u%04x", code)
  end
  local latin = {}
  for code = 128, 255 do latin[string.char(code)] = uchar(code) end
  local SPECIAL = '[%c"\\\128-\255]'

  -- State of the current encoding. Encoding never yields, so one set of variables is enough.
  local out, n, stack, keys, depth, nodes, most_nodes, wire, allow_nan, indent

  local function path(leaf)
    local parts = { keys[0] }
    for level = 1, depth do
      local key = keys[level]
      if key == nil then break end
      parts[#parts + 1] = type(key) == "string" and (find(key, "^[%a_][%w_]*$") and "." .. key or format("[%q]", key))
        or "[" .. tostring(key) .. "]"
    end
    return concat(parts) .. (leaf or "")
  end

  local refused -- the latest refusal, known by its identity: scripts raise tables of their own

  local function refuse_with(message)
    refused = { message }
    raw_error(refused, 0)
  end

  local function refuse(what)
    refuse_with(path() .. " " .. what)
  end

  -- The message when `problem` is a refusal to encode a value; nil otherwise.
  function M.refusal(problem)
    return refused and rawequal(problem, refused) and refused[1] or nil
  end

  local function quote(text)
    if find(text, SPECIAL) then
      if find(text, "[\128-\255]") and not ulen(text) then
        if not wire then refuse("is a string that is not UTF-8") end
        return '{"\\u0001b":"' .. gsub(gsub(text, '[%c"\\]', escapes), "[\128-\255]", latin) .. '"}'
      end
      return '"' .. gsub(text, '[\0-\31"\\]', escapes) .. '"'
    end
    return '"' .. text .. '"'
  end

  local function float(value)
    if value ~= value or value == huge or value == -huge then
      if not allow_nan then
        refuse("is " .. (value ~= value and "NaN (not a number)" or value > 0 and "infinity" or "-infinity")
          .. ", which is not a JSON number")
      end
      return '{"\\u0001f":"' .. (value ~= value and "nan" or value > 0 and "inf" or "-inf") .. '"}'
    end
    if wire then
      local text = format("%.17g", value)
      return find(text, "[.e]") and text or text .. ".0"
    end
    local text = format("%.15g", value)
    if tonumber(text) ~= value then text = format("%.16g", value) end
    if tonumber(text) ~= value then text = format("%.17g", value) end
    return find(text, "[.e]") and text or text .. ".0"
  end

  local function too_long(text)
    stop.stop("string", format("%s is a string of %d bytes; max_string is %d", path(), #text, limits.max_string))
  end

  local function quote_key(key)
    if #key > limits.max_string and wire then
      depth = depth - 1
      stop.stop("string", format("%s has a key of %d bytes; max_string is %d", path(), #key, limits.max_string))
    end
    return quote(key)
  end

  local function scalar(value, kind)
    if kind == "string" then
      if wire and #value > limits.max_string then too_long(value) end
      return quote(value)
    elseif kind == "number" then
      return mtype(value) == "integer" and value or float(value)
    elseif kind == "boolean" then
      return value and "true" or "false"
    elseif rawequal(value, null) or kind == "nil" then
      return "null"
    end
    refuse("is a " .. kind .. (kind == "function" and ", which cannot leave the script" or ""))
  end

  local function too_many(count)
    stop.stop("array", format("%s has %d elements; max_array is %d", path(), count, limits.max_array))
  end

  local write

  local function write_value(value)
    local kind = type(value)
    if kind == "table" then
      write(value)
    else
      n = n + 1
      out[n] = scalar(value, kind)
    end
  end

  local function path_to(level)
    local kept = depth
    depth = level
    local text = path()
    depth = kept
    return text
  end

  local function too_deep(value)
    stack[depth + 1] = value
    for later = 2, depth + 1 do
      for earlier = 1, later - 1 do
        if rawequal(stack[earlier], stack[later]) then
          refuse_with(format("%s is %s again: a table that contains itself cannot leave the script",
            path_to(later - 1), path_to(earlier - 1)))
        end
      end
    end
    stop.stop("depth", format("%s is nested deeper than max_depth = %d", path(), limits.max_depth))
  end

  local function newline(level)
    n = n + 1
    out[n] = "\n" .. repeated(indent, level)
  end

  local function write_list(list, count)
    if count > limits.max_array and wire then too_many(count) end
    nodes = nodes + count
    n = n + 1
    out[n] = "["
    local level = depth
    for index = 1, count do
      if index > 1 then
        n = n + 1
        out[n] = ","
      end
      if indent then newline(level) end
      keys[level] = index
      write_value(rawget(list, index))
    end
    if indent and count > 0 then newline(level - 1) end
    n = n + 1
    out[n] = "]"
  end

  -- The fields of an object in order; null fields have no value.
  local function each_of(object, absent)
    if not absent then return order.each(object) end
    local present = {}
    for key in next, object do present[key] = true end
    for key in next, absent do present[key] = true end
    local step, walk, first = order.each(present)
    return function(_, key)
      key = step(walk, key)
      if key ~= nil then return key, rawget(object, key) end
    end, nil, first
  end

  local function write_pairs(list, absent)
    if not wire then refuse("has keys that are neither all strings nor 1..n") end
    n = n + 1
    out[n] = '{"\\u0001m":['
    local level, first = depth, true
    for key, value in each_of(list, absent) do
      local kind = type(key)
      keys[level] = key
      if kind ~= "string" and mtype(key) ~= "integer" then
        keys[level] = nil
        depth = level - 1
        refuse("has a key that is a " .. (mtype(key) or kind) .. "; keys must be strings or integers")
      end
      n = n + 1
      out[n] = (first and "[" or ",[") .. (kind == "string" and quote_key(key) or key) .. ","
      first = false
      write_value(value)
      n = n + 1
      out[n] = "]"
    end
    n = n + 1
    out[n] = "]}"
  end

  -- The name of an integer key in plain JSON.
  local function key_as_text(object, absent, key)
    keys[depth] = nil
    if mtype(key) ~= "integer" then
      refuse("has a key that is a " .. (mtype(key) or type(key)) .. "; keys must be strings or integers")
    end
    local name = tostring(key)
    if rawget(object, name) ~= nil or absent and absent[name] then refuse("has the key " .. name .. " both as a number and as text") end
    return name
  end

  -- Whether a key has to be written in another way than as text.
  local function is_odd(key)
    if type(key) ~= "string" then return true end
    if find(key, "[\128-\255]") and not ulen(key) then
      depth = depth - 1
      refuse("has a key that is not UTF-8 text; keys must be text or integers")
    end
    return byte(key) == 1
  end

  -- How many fields an object has, and whether one of its keys is odd.
  local function survey(object, absent)
    local size, odd = 0, false
    for key in next, object do
      size = size + 1
      odd = is_odd(key) or odd
    end
    for key in next, absent or NONE do
      if rawget(object, key) == nil then
        size = size + 1
        odd = is_odd(key) or odd
      end
    end
    return size, odd
  end

  -- Tables with string keys; integer keys become text in plain JSON. `absent` is the set of fields that are null, or nil.
  local function write_object(object, absent)
    local size, odd = survey(object, absent)
    if size > limits.max_array and wire then too_many(size) end
    nodes = nodes + size
    if odd and wire then return write_pairs(object, absent) end
    n = n + 1
    out[n] = "{"
    local level, first = depth, true
    for key, value in each_of(object, absent) do
      if type(key) ~= "string" then key = key_as_text(object, absent, key) end
      keys[level] = key
      if indent then
        if not first then
          n = n + 1
          out[n] = ","
        end
        newline(level)
        n = n + 1
        out[n] = quote_key(key) .. ": "
      else
        n = n + 1
        out[n] = (first and "" or ",") .. quote_key(key) .. ":"
      end
      first = false
      write_value(value)
    end
    if indent and not first then newline(level - 1) end
    n = n + 1
    out[n] = "}"
  end

  -- The highest index of a marked array that has holes, or nil when its keys are not all positive integers.
  local function extent(list)
    local top = 0
    local count = 0
    for key in next, list do
      if mtype(key) ~= "integer" or key < 1 then return nil end
      count = count + 1
      if key > top then top = key end
    end
    return top <= 2 * count + 16 and top or nil
  end

  -- Whether all keys of a table are in 1..count. Its first element must be there: a map by number often begins elsewhere.
  local function is_within(list, count)
    if rawget(list, 1) == nil then return false end
    for key in next, list do
      if mtype(key) ~= "integer" or key < 1 or key > count then return false end
    end
    return true
  end

  -- How many elements a table has as a list, -1 for one that is an object; and the set of an object's null fields.
  local function shape(value)
    local meta = getmetatable(value)
    local marked = rawequal(meta, ARRAY)
    local count, absent = rawlen(value), nil
    if meta and not marked then
      local length
      length, absent = nulls.of(value)
      if length then
        for key in next, value do
          if mtype(key) ~= "integer" or key < 1 or key > length then return extent(value) or -1, nil end
        end
        return length, nil
      end
    end
    if count > 0 then
      -- A border (#) says nothing about other keys: they have to be counted.
      local all = 0
      for _ in next, value do all = all + 1 end
      if all ~= count and (all > count or not is_within(value, count)) or absent then count = -1 end
    end
    if marked and count <= 0 then return extent(value) or -1, nil end
    return count > 0 and count or -1, absent
  end

  function write(value)
    if host.is_sealed(value) then refuse("is a library, which cannot leave the script") end
    depth = depth + 1
    if depth > limits.max_depth then
      depth = depth - 1
      too_deep(value)
    end
    stack[depth] = value
    local count, absent = shape(value)
    if count >= 0 then
      write_list(value, count)
    else
      write_object(value, absent)
    end
    if nodes > most_nodes and wire then too_many(nodes) end
    keys[depth] = nil
    stack[depth] = nil
    depth = depth - 1
  end

  local function begin(name, on_wire, nan, indentation)
    out, n, stack, keys, depth, nodes = {}, 0, {}, { [0] = name }, 0, 0
    most_nodes = limits.max_nodes
    wire, allow_nan, indent = on_wire, nan, indentation
  end

  -- Text that needs few escapes (our own names), as a JSON string.
  function M.quote(text)
    if find(text, "[\128-\255]") and not ulen(text) then text = gsub(text, "[\128-\255]", "?") end
    return '"' .. gsub(text, '[\0-\31"\\]', escapes) .. '"'
  end

  local function spend(elements)
    spent = spent + elements
    if spent > limits.max_nodes * 2 then
      stop.stop("array", format("the script sent values of %d elements in one run; %d are allowed", spent, limits.max_nodes * 2))
    end
  end

  -- `count` values of any kind as a JSON list for the wire. Raises a refusal.
  -- At most `most` elements in all, where that is given and less than the limit.
  local function wire_any(name, count, values, most)
    begin(name, true, limits.allow_nan)
    if most and most < most_nodes then most_nodes = most end
    if count > limits.max_array then too_many(count) end
    out[1], n = "[", 1
    for index = 1, count do
      if index > 1 then
        n = n + 1
        out[n] = ","
      end
      if count > 1 then keys[0] = name .. "[" .. index .. "]" end
      write_value(values[index])
    end
    n = n + 1
    out[n] = "]"
    spend(nodes)
    local text = concat(out)
    out, stack = nil, nil
    return text
  end
  M.wire_any = wire_any

  -- The same, by the native encoder where it can.
  function M.wire(name, count, values, most)
    if native then
      local text, elements = native(count, values, most)
      if text then
        spend(elements)
        return text
      end
    end
    return (wire_any(name, count, values, most))
  end

  -- The same of its arguments, by the native encoder; nil where it cannot.
  function M.ordinary(...)
    if not native_all then return nil end
    local text, elements = native_all(...)
    if text then spend(elements) end
    return text
  end

  -- What a run returned, and the size of its text; true instead of a text that the engine holds.
  function M.result(count, values)
    if native_result then
      local size, elements = native_result(count, values)
      if size then
        spend(elements)
        return true, size
      end
    end
    local text = wire_any("value", count, values)
    return text, #text
  end

  -- One value as plain JSON text. Raises a refusal.
  function M.json(value, indentation)
    begin("value", false, false, indentation)
    write_value(value)
    local text = concat(out)
    out, stack = nil, nil
    return text
  end

  return M
end
