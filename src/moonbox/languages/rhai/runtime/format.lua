-- Values as text: for print, for messages and for debugging.
return function(R, lib, host)
  local type, next, tonumber, setmetatable = lib.type, lib.next, lib.tonumber, lib.setmetatable
  local format, gsub, find, sub, byte, rep = lib.string.format, lib.string.gsub, lib.string.find, lib.string.sub, lib.string.byte, lib.string.rep
  local concat, sort = lib.table.concat, lib.table.sort
  local codepoint = lib.utf8.codepoint
  local number_type, abs, huge = lib.math.type, lib.math.abs, lib.math.huge
  local kind_of = R.kind_of

  -- The shortest digits that read back as the same number, and the exponent of the first.
  local function digits_of(value)
    for precision = abs(value) < 1e-300 and 1 or 15, 17 do
      local text = format("%." .. precision - 1 .. "e", value)
      if tonumber(text) == value then
        local _, _, whole, fraction, exponent = find(text, "^(%d)%.?(%d*)e([-+]%d+)$")
        return (gsub(whole .. fraction, "0+$", "")), tonumber(exponent)
      end
    end
  end

  local function scientific(digits, exponent)
    local fraction = #digits > 1 and "." .. sub(digits, 2) or ""
    return sub(digits, 1, 1) .. fraction .. "e" .. format("%d", exponent)
  end

  local function decimal(digits, exponent)
    if exponent < 0 then return "0." .. rep("0", -exponent - 1) .. digits end
    if #digits <= exponent + 1 then return digits .. rep("0", exponent + 1 - #digits) .. ".0" end
    return sub(digits, 1, exponent + 1) .. "." .. sub(digits, exponent + 2)
  end

  local function float_text(value, least, most)
    if value ~= value then return "NaN" end
    if value == huge then return "inf" elseif value == -huge then return "-inf" end
    local sign, magnitude = value < 0 and "-" or "", abs(value)
    local digits, exponent = digits_of(magnitude)
    if magnitude > most or magnitude < least then return sign .. scientific(digits, exponent) end
    return sign .. decimal(digits, exponent)
  end

  local function display_float(value)
    if value == 0 then return "0.0" end
    return float_text(value, 9.9999998245167e-14, 9999999827968.0)
  end
  local function debug_float(value)
    if value == 0 then return 1 / value < 0 and "-0.0" or "0.0" end
    return float_text(value, 1e-4, 9999999999999999.0)
  end

  local escapes = { ["\\"] = "\\\\", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t", ["\0"] = "\\0" }
  local function escaped(char) return escapes[char] or format("\\u{%x}", byte(char)) end
  local function debug_text(text)
    text = gsub(text, '[%c\\"\127]', function(char) return char == '"' and '\\"' or escaped(char) end)
    if find(text, "[\xC2\xE2]") then
      text = gsub(text, "\xC2[\x80-\xA0]", function(char) return format("\\u{%x}", codepoint(char)) end)
      text = gsub(text, "\xE2\x80[\x8B-\x8F\xA8-\xAE]", function(char) return format("\\u{%x}", codepoint(char)) end)
    end
    return '"' .. text .. '"'
  end

  local function debug_char(text)
    if text == '"' then return "'\"'" end
    if text == "'" then return "'\\''" end
    return "'" .. sub(debug_text(text), 2, -2) .. "'"
  end

  -- The keys of a map in order.
  local function sorted_keys(map)
    local keys, count = {}, 0
    for key in next, map do
      if key ~= true then
        count = count + 1
        keys[count] = key
      end
    end
    sort(keys)
    return keys, count
  end
  R.sorted_keys = sorted_keys

  local function range_text(range, dots)
    local to = range[false]
    return format("%d", range[true]) .. dots .. (to == lib.math.maxinteger and "" or format("%d", to))
  end

  local debug_value

  local function listed(items, count, of)
    local parts = {}
    for i = 1, count do parts[i] = of(items[i]) end
    return "[" .. concat(parts, ", ") .. "]"
  end

  local function debug_fn(fn)
    local info = fn[false]
    local parts = { debug_text(info.name) }
    for i = 1, info.curried and #info.curried or 0 do parts[#parts + 1] = debug_value(info.curried[i]) end
    return (fn[true] and "Fn*(" or "Fn(") .. concat(parts, ", ") .. ")"
  end

  local function blob_text(blob)
    local parts = { "[" }
    local bytes = blob[true]
    for i = 1, #bytes do
      if i > 1 and (i - 1) % 8 == 0 then parts[#parts + 1] = " " end
      parts[#parts + 1] = format("%02x", bytes[i])
    end
    parts[#parts + 1] = "]"
    return concat(parts)
  end

  local debuggers = {
    ["()"] = function() return "()" end,
    bool = function(value) return value and "true" or "false" end,
    i64 = function(value) return format("%d", value) end,
    f64 = debug_float,
    string = debug_text,
    char = function(value) return debug_char(value[true]) end,
    array = function(value) return listed(value, #value, debug_value) end,
    map = function(value)
      local keys, count = sorted_keys(value)
      local parts = {}
      for i = 1, count do parts[i] = debug_text(keys[i]) .. ": " .. debug_value(value[keys[i]]) end
      return "#{" .. concat(parts, ", ") .. "}"
    end,
    Fn = debug_fn,
    range = function(value) return range_text(value, "..") end,
    ["range="] = function(value) return range_text(value, "..=") end,
    blob = blob_text,
    timestamp = function() return "<timestamp>" end,
    iterator = function(value) return value[false].name end,
    unknown = function() return "<unknown>" end,
  }

  function debug_value(value) return debuggers[kind_of(value)](value) end
  R.debug = debug_value

  local displays = setmetatable({
    ["()"] = function() return "" end,
    f64 = display_float,
    string = function(value) return value end,
    char = function(value) return value[true] end,
    Fn = function(value) return "Fn(" .. value[false].name .. ")" end,
  }, { __index = debuggers })

  -- A value as print shows it.
  local function display(value)
    local lua = type(value)
    if lua == "string" then return value end
    if number_type(value) == "integer" then return format("%d", value) end
    return displays[kind_of(value)](value)
  end
  R.display = display

  -- An interpolated string.
  function R.text(pos, ...)
    local parts = { ... }
    for i = 1, #parts do
      local part = parts[i]
      if type(part) ~= "string" and number_type(part) ~= "integer" then parts[i] = display(part) end
    end
    local result = concat(parts)
    if #result > R.max_string then R.too_large("string", pos) end
    return result
  end
end
