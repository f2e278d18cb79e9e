-- Functions of strings and characters.
return function(R, lib, host)
  local type, next = lib.type, lib.next
  local string, utf8 = lib.string, lib.utf8
  local sub, find, rep, byte, upper, lower, gsub = string.sub, string.find, string.rep, string.byte, string.upper, string.lower, string.gsub
  local concat = lib.table.concat
  local offset, utf8_len, codepoint, utf8_char, charpattern = utf8.offset, utf8.len, utf8.codepoint, utf8.char, utf8.charpattern
  local U, add_natives, alone, is_int, is_char = R.U, R.add_natives, R.alone, R.is_int, R.is_char

  -- Text of an argument that may be a string or a character; nil for anything else.
  local function text_of(value)
    if type(value) == "string" then return value end
    return is_char(value) and value[true] or nil
  end

  local function length(text) return utf8_len(text) or #text end

  local function chars_of(text)
    local items, count = {}, 0
    for char in string.gmatch(text, charpattern) do
      count = count + 1
      items[count] = R.char(char)
    end
    return R.array(items)
  end
  R.chars_of = chars_of

  -- The bytes of `count` characters from `start`, both counted in characters from 0.
  local function slice(text, start, count)
    if count <= 0 then return "" end
    local first = start <= #text and offset(text, start + 1)
    if not first or first > #text then return "" end
    local last = count <= #text and offset(text, count + 1, first)
    return sub(text, first, last and last - 1 or #text)
  end

  -- Where a part starts: negative positions count from the end.
  local function from_start(text, start)
    if start >= 0 then return start end
    local count = length(text)
    return start < -count and 0 or count + start
  end

  -- (range), (start) or (start, count), as a part of the string; nil for other arguments.
  local function part_by(text, start, count)
    local from, size = R.span(start, count, true)
    return from and slice(text, from_start(text, from), size) or nil
  end

  -- White space as Unicode has it.
  local spaces = { ["\xC2\x85"] = true, ["\xC2\xA0"] = true, ["\xE1\x9A\x80"] = true, ["\xE2\x80\xA8"] = true,
    ["\xE2\x80\xA9"] = true, ["\xE2\x80\xAF"] = true, ["\xE2\x81\x9F"] = true, ["\xE3\x80\x80"] = true }
  for n = 0x80, 0x8A do spaces["\xE2\x80" .. string.char(n)] = true end
  for char in string.gmatch(" \t\n\r\v\f", ".") do spaces[char] = true end

  local function trim(text)
    local first, last = 1, #text
    while first <= last do
      local stop = offset(text, 2, first) or first + 1
      if not spaces[sub(text, first, stop - 1)] then break end
      first = stop
    end
    while last >= first do
      local start = last
      while start > first and byte(text, start) & 0xC0 == 0x80 do start = start - 1 end
      if not spaces[sub(text, start, last)] then break end
      last = start - 1
    end
    return sub(text, first, last)
  end
  R.trim = trim

  -- Case: ASCII by Lua, and the alphabets next to it.
  local to_lower_case, to_upper_case = {}, {}
  local function pair(up, low) to_lower_case[utf8_char(up)], to_upper_case[utf8_char(low)] = utf8_char(low), utf8_char(up) end
  for code = 0xC0, 0xDE do if code ~= 0xD7 then pair(code, code + 32) end end
  for code = 0x100, 0x136, 2 do if code ~= 0x130 then pair(code, code + 1) end end
  for code = 0x139, 0x147, 2 do pair(code, code + 1) end
  for code = 0x14A, 0x176, 2 do pair(code, code + 1) end
  for code = 0x179, 0x17D, 2 do pair(code, code + 1) end
  for code = 0x391, 0x3A9 do if code ~= 0x3A2 then pair(code, code + 32) end end
  for code = 0x410, 0x42F do pair(code, code + 32) end
  for code = 0x400, 0x40F do pair(code, code + 80) end
  for code = 0x531, 0x556 do pair(code, code + 48) end
  for code = 0x1E00, 0x1EFE, 2 do if code < 0x1E96 or code > 0x1E9E then pair(code, code + 1) end end
  pair(0x178, 0xFF)
  for low, up in next, { [0x3AC] = 0x386, [0x3AD] = 0x388, [0x3AE] = 0x389, [0x3AF] = 0x38A, [0x3CC] = 0x38C, [0x3CD] = 0x38E, [0x3CE] = 0x38F } do
    pair(up, low)
  end
  to_upper_case["\xCF\x82"] = "\xCE\xA3"
  to_upper_case["\xC2\xB5"] = "\xCE\x9C"

  local function to_upper(text)
    text = upper(text)
    if find(text, "[\xC2-\xF4]") then
      text = gsub(text, "[\xC2-\xF4][\x80-\xBF]*", function(char) return char == "\xC3\x9F" and "SS" or to_upper_case[char] end)
    end
    return text
  end
  local function to_lower(text)
    text = lower(text)
    if find(text, "[\xC2-\xF4]") then text = gsub(text, "[\xC2-\xF4][\x80-\xBF]*", to_lower_case) end
    return text
  end

  local function checked(text, pos)
    if #text > R.max_string then R.too_large("string", pos) end
    return text
  end

  -- Where a part is found, in characters; -1 if it is not.
  local function index_of(text, what, start)
    if text == "" then return -1 end
    local from = 1
    if start then
      if start >= length(text) then return -1 end
      from = offset(text, from_start(text, start) + 1)
    end
    local at = R.find_text(text, what, from)
    return at and (at == 1 and 0 or length(sub(text, 1, at - 1))) or -1
  end

  local function replaced(text, what, with, pos)
    local parts, from, size = {}, 1, 0
    if what == "" then
      for char in string.gmatch(text, charpattern) do parts[#parts + 1] = char end
      return checked(with .. concat(parts, with) .. (text ~= "" and with or ""), pos)
    end
    while true do
      local start, stop = R.find_text(text, what, from)
      if not start then break end
      parts[#parts + 1] = sub(text, from, start - 1)
      parts[#parts + 1] = with
      size = size + start - from + #with
      if size > R.max_string then R.too_large("string", pos) end
      from = stop + 1
    end
    parts[#parts + 1] = sub(text, from)
    return checked(concat(parts), pos)
  end

  local function split(text, by, most_parts)
    local parts, from = {}, 1
    if by == "" then
      parts[1] = ""
      for char in string.gmatch(text, charpattern) do
        if most_parts and #parts >= most_parts then break end
        parts[#parts + 1] = char
        from = from + #char
      end
      if most_parts and #parts >= most_parts then
        parts[#parts] = parts[#parts] .. sub(text, from)
      else
        parts[#parts + 1] = ""
      end
      return R.array(parts)
    end
    while not most_parts or #parts < most_parts - 1 do
      local start, stop = R.find_text(text, by, from)
      if not start then break end
      parts[#parts + 1] = sub(text, from, start - 1)
      from = stop + 1
    end
    parts[#parts + 1] = sub(text, from)
    return R.array(parts)
  end

  local function split_back(text, by, most_parts)
    if by == "" then
      local parts = split(text, by)
      local out = {}
      for i = #parts, 1, -1 do out[#out + 1] = parts[i] end
      return R.array(out)
    end
    local starts, from = {}, 1
    while true do
      local start, stop = R.find_text(text, by, from)
      if not start then break end
      starts[#starts + 1] = start
      from = stop + 1
    end
    local parts, last = {}, #text
    for i = #starts, 1, -1 do
      if most_parts and #parts >= most_parts - 1 then break end
      parts[#parts + 1] = sub(text, starts[i] + #by, last)
      last = starts[i] - 1
    end
    parts[#parts + 1] = sub(text, 1, last)
    return R.array(parts)
  end

  local function split_with(splitter)
    return function(text, by, most_parts)
      by = text_of(by)
      if not by then return nil end
      if most_parts == nil then return splitter(text, by) end
      if not is_int(most_parts) then return nil end
      if most_parts < 1 then return R.array({ text }) end
      return splitter(text, by, most_parts)
    end
  end
  local split_by, split_back_by = split_with(split), split_with(split_back)

  local function split_words(text)
    local words, word = {}, {}
    for char in string.gmatch(text, charpattern) do
      if spaces[char] then
        if #word > 0 then words[#words + 1] = concat(word) end
        word = {}
      else
        word[#word + 1] = char
      end
    end
    if #word > 0 then words[#words + 1] = concat(word) end
    return R.array(words)
  end

  local function split_at(text, index)
    local count = length(text)
    local at = index
    if index <= 0 then at = index < -count and 0 or count + index end
    if index == 0 then at = count end
    if at > count then at = count end
    local stop = offset(text, at + 1) or #text + 1
    return R.array({ sub(text, 1, stop - 1), sub(text, stop) })
  end

  local function padded(text, size, with, pos)
    if size <= 0 then return text end
    if size > R.max_string then R.too_large("string", pos) end
    local have, width = length(text), length(with)
    if size <= have or width == 0 then return text end
    local missing = size - have
    if missing * #with > R.max_string then R.too_large("string", pos) end
    return checked(text .. rep(with, missing // width) .. slice(with, 0, missing % width), pos)
  end

  local function char_at(text, index)
    local count = length(text)
    local at = R.calc_index(count, index)
    if not at then return nil end
    local start = offset(text, at + 1)
    return start, offset(text, 2, start) - 1
  end

  -- Predicates and parts of two texts.
  local function with_text(fn)
    return function(K, d, pos, text, other, extra)
      other = text_of(other)
      if other and extra == nil then return fn(text, other) end
    end
  end

  local properties = {
    len = length,
    is_empty = function(text) return text == "" end,
    bytes = function(text) return #text end,
    chars = chars_of,
  }
  R.getters.string = properties
  for name, fn in next, properties do
    if name ~= "chars" then add_natives("string", true, { [name] = alone(fn) }) end
  end

  add_natives("string", true, {
    contains = with_text(function(text, other) return R.find_text(text, other, 1) ~= nil end),
    starts_with = with_text(function(text, other) return sub(text, 1, #other) == other end),
    ends_with = with_text(function(text, other) return other == "" or sub(text, -#other) == other end),
    index_of = function(K, d, pos, text, what, start)
      what = text_of(what)
      if what and (start == nil or is_int(start)) then return index_of(text, what, start) end
    end,
    sub_string = function(K, d, pos, text, start, count) return part_by(text, start, count) end,
    to_upper = alone(to_upper),
    to_lower = alone(to_lower),
    to_chars = alone(chars_of),
    to_string = alone(function(text) return text end),
    split = function(K, d, pos, text, by, count)
      if by == nil then return split_words(text) end
      if is_int(by) then return count == nil and split_at(text, by) or nil end
      return split_by(text, by, count)
    end,
    split_rev = function(K, d, pos, text, by, count) return split_back_by(text, by, count) end,
    get = function(K, d, pos, text, index, extra)
      if not is_int(index) or extra ~= nil then return nil end
      local start, stop = char_at(text, index)
      return start and R.char(sub(text, start, stop)) or U
    end,
    chars = function(K, d, pos, text, start, count)
      local piece = start == nil and text or part_by(text, start, count)
      if not piece then return nil end
      local items = chars_of(piece)
      return R.iterator("CharsStream", items, #items)
    end,
  })

  -- Functions that make a new string of the one they are called on.
  local function changing(fn)
    return function(K, d, pos, text, ...)
      local changed, value = fn(pos, text, ...)
      if changed == nil then return nil end
      return value or U, changed
    end
  end
  add_natives("string", false, {
    trim = changing(function(pos, text, extra) return extra == nil and trim(text) or nil end),
    clear = changing(function() return "" end),
    make_upper = changing(function(pos, text) return to_upper(text) end),
    make_lower = changing(function(pos, text) return to_lower(text) end),
    truncate = changing(function(pos, text, count)
      if is_int(count) then return count <= 0 and "" or slice(text, 0, count) end
    end),
    crop = changing(function(pos, text, start, count) return part_by(text, start, count) end),
    pad = changing(function(pos, text, size, with)
      with = text_of(with)
      if with and is_int(size) then return padded(text, size, with, pos) end
    end),
    replace = changing(function(pos, text, what, with)
      what, with = text_of(what), text_of(with)
      if what and with then return text == "" and "" or replaced(text, what, with, pos) end
    end),
    remove = changing(function(pos, text, what)
      what = text_of(what)
      return what and R.without(text, what) or nil
    end),
    append = changing(function(pos, text, item)
      if item == nil then return nil end
      local more = R.is_blob(item) and R.bytes_to_text(item[true]) or R.display(item)
      return checked(text .. more, pos)
    end),
    set = changing(function(pos, text, index, char)
      if not is_int(index) or not is_char(char) then return nil end
      local start, stop = char_at(text, index)
      if not start then return text end
      return checked(sub(text, 1, start - 1) .. char[true] .. sub(text, stop + 1), pos)
    end),
    pop = changing(function(pos, text, count)
      if text == "" then return "", count == nil and U or "" end
      if count == nil then
        local start = offset(text, -1)
        return sub(text, 1, start - 1), R.char(sub(text, start))
      end
      if not is_int(count) then return nil end
      if count <= 0 then return text, "" end
      local have = length(text)
      if count >= have then return "", text end
      local start = offset(text, -count)
      return sub(text, 1, start - 1), sub(text, start)
    end),
  })

  local function one_char(change)
    return function(text)
      local changed = change(text)
      return R.char(length(changed) == 1 and changed or text)
    end
  end
  local char_upper, char_lower = one_char(to_upper), one_char(to_lower)
  add_natives("char", true, {
    to_upper = function(K, d, pos, char) return char_upper(char[true]) end,
    to_lower = function(K, d, pos, char) return char_lower(char[true]) end,
    to_int = function(K, d, pos, char) return codepoint(char[true]) end,
  })
  add_natives("char", false, {
    make_upper = function(K, d, pos, char) return U, char_upper(char[true]) end,
    make_lower = function(K, d, pos, char) return U, char_lower(char[true]) end,
  })
end
