-- Blobs: byte arrays.
return function(R, lib, host)
  local type, next = lib.type, lib.next
  local string = lib.string
  local move, insert, remove, concat = lib.table.move, lib.table.insert, lib.table.remove, lib.table.concat
  local U, add_natives, is_int, is_blob, span, offset_len = R.U, R.add_natives, R.is_int, R.is_blob, R.span, R.offset_len
  local utf8_len = lib.utf8.len

  local function bytes_of(text)
    local bytes = {}
    for i = 1, #text do bytes[i] = string.byte(text, i) end
    return bytes
  end

  local function raw_text(bytes)
    local parts = {}
    for i = 1, #bytes do parts[i] = string.char(bytes[i]) end
    return concat(parts)
  end
  R.raw_text, R.bytes_of = raw_text, bytes_of

  -- Text of bytes; what is not UTF-8 becomes the replacement character.
  local function valid_text(text)
    local parts, from = {}, 1
    while true do
      local fine, bad = utf8_len(text, from)
      if fine then
        parts[#parts + 1] = string.sub(text, from)
        return concat(parts)
      end
      parts[#parts + 1] = string.sub(text, from, bad - 1)
      parts[#parts + 1] = "\xEF\xBF\xBD"
      from = bad + 1
      while from <= #text and string.byte(text, from) & 0xC0 == 0x80 do from = from + 1 end
      if from > #text then return concat(parts) end
    end
  end
  function R.bytes_to_text(bytes) return valid_text(raw_text(bytes)) end

  local function check(blob, pos)
    if #blob[true] > R.max_array then R.too_large("array", pos) end
    return U
  end

  -- Adds a byte, a character, text or another blob; false for anything else.
  function R.blob_append(blob, item, pos)
    local bytes = blob[true]
    if is_int(item) then
      bytes[#bytes + 1] = item & 0xFF
    else
      local more
      if is_blob(item) then more = item[true] end
      if R.is_char(item) then more = bytes_of(item[true]) end
      if type(item) == "string" then more = bytes_of(item) end
      if not more then return false end
      move(more, 1, #more, #bytes + 1, bytes)
    end
    check(blob, pos)
    return true
  end

  function R.blob_of(list)
    local bytes = {}
    for i = 1, #list do
      if not is_int(list[i]) then return nil end
      bytes[i] = list[i] & 0xFF
    end
    return R.blob(bytes)
  end

  local function new_blob(K, d, pos, size, value)
    if not is_int(size) or (value ~= nil and not is_int(value)) then return nil end
    if size > R.max_array then R.too_large("array", pos) end
    local bytes = {}
    for i = 1, size do bytes[i] = (value or 0) & 0xFF end
    return R.blob(bytes)
  end
  add_natives("none", true, { blob = function() return R.blob({}) end })
  add_natives("i64", true, { blob = new_blob })
  add_natives("string", true, { to_blob = function(K, d, pos, text) return R.blob(bytes_of(text)) end })

  local properties = {
    len = function(blob) return #blob[true] end,
    is_empty = function(blob) return #blob[true] == 0 end,
  }
  R.getters.blob = properties

  -- Numbers in bytes, in one order or the other.
  local function parse(little, float)
    return function(K, d, pos, blob, start, count)
      local from, size = span(start, count)
      if not from then return nil end
      local bytes = blob[true]
      from, size = offset_len(#bytes, from, size)
      if size > 8 then size = 8 end
      local parts = {}
      for i = 1, 8 do parts[i] = i <= size and string.char(bytes[from + i]) or "\0" end
      return (string.unpack((little and "<" or ">") .. (float and "d" or "i8"), concat(parts)))
    end
  end

  local function write(packed)
    return function(K, d, pos, blob, start, count, value)
      if R.is_range(start) then value, count = count, nil end
      local from, size = span(start, count)
      local text = from and packed(value)
      if not text then return nil end
      local bytes = blob[true]
      from, size = offset_len(#bytes, from, size)
      for i = 1, size < #text and size or #text do bytes[from + i] = string.byte(text, i) end
      return U
    end
  end

  local function number_in(order)
    return function(value)
      if is_int(value) then return string.pack(order .. "i8", value) end
      if lib.math.type(value) == "float" then return string.pack(order .. "d", value) end
    end
  end

  local function taken(blob, start, count)
    local from, size = span(start, count, true)
    if not from then return nil end
    from, size = offset_len(#blob[true], from, size)
    return from, size
  end

  add_natives("blob", true, {
    len = function(K, d, pos, blob) return #blob[true] end,
    is_empty = function(K, d, pos, blob) return #blob[true] == 0 end,
    contains = function(K, d, pos, blob, value)
      if not is_int(value) then return nil end
      for _, byte in next, blob[true] do
        if byte == value then return true end
      end
      return false
    end,
    get = function(K, d, pos, blob, index)
      if not is_int(index) then return nil end
      local at = R.calc_index(#blob[true], index)
      return at and blob[true][at + 1] or 0
    end,
    as_string = function(K, d, pos, blob) return R.bytes_to_text(blob[true]) end,
    to_array = function(K, d, pos, blob) return R.array(move(blob[true], 1, #blob[true], 1, {})) end,
    extract = function(K, d, pos, blob, start, count)
      local from, size = taken(blob, start, count)
      return from and R.blob(move(blob[true], from + 1, from + size, 1, {})) or nil
    end,
    parse_le_int = parse(true, false), parse_be_int = parse(false, false),
    parse_le_float = parse(true, true), parse_be_float = parse(false, true),
  })

  add_natives("blob", false, {
    ["push append"] = function(K, d, pos, blob, item)
      if item == nil or not R.blob_append(blob, item, pos) then return nil end
      return U
    end,
    insert = function(K, d, pos, blob, index, value)
      if not is_int(index) or not is_int(value) then return nil end
      insert(blob[true], offset_len(#blob[true], index, 0) + 1, value & 0xFF)
      return check(blob, pos)
    end,
    pad = function(K, d, pos, blob, size, value)
      if not is_int(size) or not is_int(value) then return nil end
      if size > R.max_array then R.too_large("array", pos) end
      for i = #blob[true] + 1, size do blob[true][i] = value & 0xFF end
      return U
    end,
    pop = function(K, d, pos, blob) return remove(blob[true]) or 0 end,
    shift = function(K, d, pos, blob) return #blob[true] > 0 and remove(blob[true], 1) or 0 end,
    remove = function(K, d, pos, blob, index)
      if not is_int(index) then return nil end
      local at = R.calc_index(#blob[true], index)
      return at and remove(blob[true], at + 1) or 0
    end,
    set = function(K, d, pos, blob, index, value)
      if not is_int(index) or not is_int(value) then return nil end
      local at = R.calc_index(#blob[true], index)
      if at then blob[true][at + 1] = value & 0xFF end
      return U
    end,
    splice = function(K, d, pos, blob, start, count, other)
      if R.is_range(start) then other, count = count, nil end
      local from, size = span(start, count)
      if not from or not is_blob(other) then return nil end
      from, size = offset_len(#blob[true], from, size)
      R.put_in(blob[true], from, size, other[true])
      return check(blob, pos)
    end,
    split = function(K, d, pos, blob, index)
      if not is_int(index) then return nil end
      local bytes = blob[true]
      local from = offset_len(#bytes, index, 0)
      return R.blob(R.cut(bytes, from, #bytes - from))
    end,
    drain = function(K, d, pos, blob, start, count)
      local from, size = taken(blob, start, count)
      return from and R.blob(R.cut(blob[true], from, size)) or nil
    end,
    retain = function(K, d, pos, blob, start, count)
      local from, size = taken(blob, start, count)
      return from and R.blob(R.cut_around(blob[true], from, size)) or nil
    end,
    write_le = write(number_in("<")), write_be = write(number_in(">")),
    write_utf8 = write(function(text) return type(text) == "string" and text or nil end),
    write_ascii = write(function(text) return type(text) == "string" and string.gsub(text, "[\x80-\xFF]", "") or nil end),
  })
end
