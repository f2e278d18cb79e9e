-- JSON: text of values, and values of text.
return function(R, lib, host)
  local tonumber = lib.tonumber
  local string, utf8_char = lib.string, lib.utf8.char
  local sub, find, match, byte, format, gsub = string.sub, string.find, string.match, string.byte, string.format, string.gsub
  local concat = lib.table.concat
  local number_type = lib.math.type
  local U, kind_of = R.U, R.kind_of

  local MAX_DEPTH = 128

  local escapes = { ['"'] = '\\"', ["\\"] = "\\\\", ["\b"] = "\\b", ["\f"] = "\\f", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t" }
  local function quoted(text)
    return '"' .. gsub(text, '[%c"\\\127]', function(char) return escapes[char] or format("\\u%04x", byte(char)) end) .. '"'
  end

  local writers
  local function written(value)
    local writer = writers[kind_of(value)]
    return writer and writer(value) or quoted(R.display(value))
  end
  writers = {
    ["()"] = function() return "null" end,
    bool = function(value) return value and "true" or "false" end,
    i64 = function(value) return format("%d", value) end,
    f64 = function(value)
      local text = R.debug(value)
      return find(text, "[Nn]") and "null" or text
    end,
    string = quoted,
    char = function(value) return quoted(value[true]) end,
    array = function(value)
      local parts = {}
      for i = 1, #value do parts[i] = written(value[i]) end
      return "[" .. concat(parts, ",") .. "]"
    end,
    map = function(value)
      local keys, count = R.sorted_keys(value)
      for i = 1, count do keys[i] = quoted(keys[i]) .. ":" .. written(value[keys[i]]) end
      return "{" .. concat(keys, ",") .. "}"
    end,
    blob = function(value)
      return "[" .. concat(value[true], ",") .. "]"
    end,
    Fn = function(value) return quoted(value[false].name) end,
  }
  function R.to_json(value) return written(value) end

  -- Reading

  local function fail(text, at, why, pos)
    local before = sub(text, 1, at - 1)
    local lines, last = 1, 0
    for newline in lib.string.gmatch(before, "()\n") do lines, last = lines + 1, newline end
    R.raise("ErrorRuntime", format("Error parsing JSON: %s at line %d column %d", why, lines, at - last), pos, nil)
  end

  local function skip(text, at) return find(text, "[^ \t\r\n]", at) or #text + 1 end

  local plain = { b = "\b", f = "\f", n = "\n", r = "\r", t = "\t", ['"'] = '"', ["\\"] = "\\", ["/"] = "/" }

  local function read_string(text, at, pos)
    local parts, from = {}, at + 1
    while true do
      local stop = find(text, '["\\%c]', from)
      if not stop then fail(text, #text + 1, "the string is not terminated", pos) end
      parts[#parts + 1] = sub(text, from, stop - 1)
      local char = sub(text, stop, stop)
      if char == '"' then return concat(parts), stop + 1 end
      if char ~= "\\" then fail(text, stop, "control character in a string", pos) end
      local escape = sub(text, stop + 1, stop + 1)
      if plain[escape] then
        parts[#parts + 1] = plain[escape]
        from = stop + 2
      else
        local hex = escape == "u" and match(text, "^%x%x%x%x", stop + 2)
        if not hex then fail(text, stop, "invalid escape", pos) end
        local code = tonumber(hex, 16)
        from = stop + 6
        if code >= 0xD800 and code < 0xDC00 then
          local low = match(text, "^\\u([dD][c-fC-F]%x%x)", from)
          if not low then fail(text, stop, "lone surrogate", pos) end
          code = 0x10000 + (code - 0xD800) * 0x400 + tonumber(low, 16) - 0xDC00
          from = from + 6
        elseif code >= 0xDC00 and code < 0xE000 then
          fail(text, stop, "lone surrogate", pos)
        end
        parts[#parts + 1] = utf8_char(code)
      end
    end
  end

  local read_value

  local function read_array(text, at, depth, pos)
    local items = {}
    at = skip(text, at + 1)
    if sub(text, at, at) == "]" then return R.array(items), at + 1 end
    while true do
      items[#items + 1], at = read_value(text, at, depth, pos)
      at = skip(text, at)
      local char = sub(text, at, at)
      if char == "]" then return R.array(items), at + 1 end
      if char ~= "," then fail(text, at, "expected `,` or `]`", pos) end
      at = at + 1
    end
  end

  local function read_object(text, at, depth, pos)
    local entries, count = {}, 0
    at = skip(text, at + 1)
    if sub(text, at, at) == "}" then return R.map({ [true] = 0 }), at + 1 end
    while true do
      at = skip(text, at)
      if sub(text, at, at) ~= '"' then fail(text, at, "key must be a string", pos) end
      local key, value
      key, at = read_string(text, at, pos)
      at = skip(text, at)
      if sub(text, at, at) ~= ":" then fail(text, at, "expected `:`", pos) end
      value, at = read_value(text, at + 1, depth, pos)
      if entries[key] == nil then count = count + 1 end
      entries[key] = value
      at = skip(text, at)
      local char = sub(text, at, at)
      if char == "}" then
        entries[true] = count
        return R.map(entries), at + 1
      end
      if char ~= "," then fail(text, at, "expected `,` or `}`", pos) end
      at = at + 1
    end
  end

  local words = { ["true"] = true, ["false"] = false, null = U }

  function read_value(text, at, depth, pos)
    if depth > MAX_DEPTH then fail(text, at, "nested too deeply", pos) end
    at = skip(text, at)
    local char = sub(text, at, at)
    if char == "{" then return read_object(text, at, depth + 1, pos) end
    if char == "[" then return read_array(text, at, depth + 1, pos) end
    if char == '"' then return read_string(text, at, pos) end
    local number = match(text, "^-?%d+%.?%d*[eE]?[-+]?%d*", at)
    if number then
      local exact = match(number, "^-?[1-9]%d*$") or match(number, "^-?0$") or match(number, "^-?%d+%.%d+$")
        or match(number, "^-?%d+[eE][-+]?%d+$") or match(number, "^-?%d+%.%d+[eE][-+]?%d+$")
      if not exact then fail(text, at, "invalid number", pos) end
      local value = tonumber(number)
      if not find(number, "[.eE]") and number_type(value) ~= "integer" then value = value + 0.0 end
      return value, at + #number
    end
    local word = match(text, "^%l+", at)
    if word and words[word] ~= nil then return words[word], at + #word end
    fail(text, at, char == "" and "the text ends here" or "expected value", pos)
  end

  R.add_natives("string", true, {
    parse_json = function(K, d, pos, text, extra)
      if extra ~= nil then return nil end
      local value, at = read_value(text, 1, 0, pos)
      at = skip(text, at)
      if at <= #text then fail(text, at, "trailing characters", pos) end
      return R.check_value(value, pos)
    end,
  })
  R.add_natives("array", true, { to_json = function(K, d, pos, list) return written(list) end })
end
