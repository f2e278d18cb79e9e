-- Functions of numbers.
return function(R, lib, host)
  local type, next, tonumber = lib.type, lib.next, lib.tonumber
  local math = lib.math
  local number_type, tointeger, huge = math.type, math.tointeger, math.huge
  local least, most = math.mininteger, math.maxinteger
  local format, match, lower, byte, sub = lib.string.format, lib.string.match, lib.string.lower, lib.string.byte, lib.string.sub
  local add_natives, display, one = R.add_natives, R.display, R.alone

  local function round(x)
    local whole = x < 0 and math.ceil(x - 0.5) or math.floor(x + 0.5)
    if math.abs(x) >= 2 ^ 52 or x ~= x then return x end
    if math.abs(x) == 0.49999999999999994 then return 0.0 end
    return whole + 0.0
  end
  local function trunc(x)
    if x ~= x or x == huge or x == -huge then return x end
    return (x < 0 and math.ceil(x) or math.floor(x)) + 0.0
  end
  local function whole_by(rounding)
    return function(x)
      if math.abs(x) >= 2 ^ 53 or x ~= x then return x end
      return rounding(x) + 0.0
    end
  end

  local float_properties = {
    floor = whole_by(math.floor),
    ceiling = whole_by(math.ceil),
    round = round,
    int = trunc,
    fraction = function(x) return x - trunc(x) end,
    is_nan = function(x) return x ~= x end,
    is_finite = function(x) return x == x and x ~= huge and x ~= -huge end,
    is_infinite = function(x) return x == huge or x == -huge end,
    is_zero = function(x) return x == 0 end,
  }
  R.getters.f64 = float_properties
  for name, fn in next, float_properties do add_natives("f64", true, { [name] = one(fn) }) end

  local int_properties = {
    is_zero = function(x) return x == 0 end,
    is_odd = function(x) return x % 2 ~= 0 end,
    is_even = function(x) return x % 2 == 0 end,
  }
  R.getters.i64 = int_properties
  for name, fn in next, int_properties do add_natives("i64", true, { [name] = one(fn) }) end

  local function sinh(x) return (math.exp(x) - math.exp(-x)) / 2 end
  local function cosh(x) return (math.exp(x) + math.exp(-x)) / 2 end
  local function tanh(x)
    if x > 20 then return 1.0 elseif x < -20 then return -1.0 end
    local e = math.exp(2 * x)
    return (e - 1) / (e + 1)
  end
  local function asinh(x)
    local a = math.abs(x)
    local r = math.log(a + math.sqrt(a * a + 1))
    return x < 0 and -r or r
  end

  local function float_argument(fn)
    return function(K, d, pos, x, y)
      if number_type(y) == "float" then return fn(x, y) end
    end
  end

  add_natives("f64", true, {
    abs = one(math.abs),
    sign = one(function(x, pos)
      if x ~= x then R.arithmetic_error("Sign of NaN is undefined", pos) end
      return x > 0 and 1 or x < 0 and -1 or 0
    end),
    sin = one(math.sin), cos = one(math.cos), tan = one(math.tan),
    asin = one(math.asin), acos = one(math.acos),
    atan = function(K, d, pos, x, y)
      if y == nil then return math.atan(x) end
      if number_type(y) == "float" then return math.atan(x, y) end
    end,
    sinh = one(sinh), cosh = one(cosh), tanh = one(tanh),
    asinh = one(asinh),
    acosh = one(function(x) return math.log(x + math.sqrt(x * x - 1)) end),
    atanh = one(function(x) return math.log((1 + x) / (1 - x)) / 2 end),
    hypot = float_argument(function(x, y) return math.sqrt(x * x + y * y) end),
    to_degrees = one(function(x) return x * (180.0 / math.pi) end),
    to_radians = one(function(x) return x * (math.pi / 180.0) end),
    sqrt = one(function(x) return x < 0 and 0.0 / 0.0 or math.sqrt(x) end),
    exp = one(math.exp),
    ln = one(function(x) return math.log(x) end),
    log = function(K, d, pos, x, base)
      if base == nil then return math.log(x, 10) end
      if number_type(base) == "float" then return math.log(x, base) end
    end,
    to_int = one(function(x, pos)
      if x >= 2.0 ^ 63 or x < -2.0 ^ 63 or x ~= x then
        if x == x and x ~= 2.0 ^ 63 then R.arithmetic_error("Integer overflow: to_int(" .. display(x) .. ")", pos) end
        return x ~= x and 0 or most
      end
      return tointeger(trunc(x))
    end),
    to_float = one(function(x) return x end),
  })

  add_natives("i64", true, {
    abs = one(function(x, pos)
      if x == least then R.arithmetic_error(format("Negation overflow: -%d", x), pos) end
      return x < 0 and -x or x
    end),
    sign = one(function(x) return x > 0 and 1 or x < 0 and -1 or 0 end),
    to_int = one(function(x) return x end),
    to_float = one(function(x) return x + 0.0 end),
    to_hex = one(function(x) return format("%x", x) end),
    to_octal = one(function(x) return format("%o", x) end),
    to_binary = one(function(x)
      if x == 0 then return "0" end
      local digits = {}
      while x ~= 0 do
        digits[#digits + 1] = x & 1
        x = x >> 1
      end
      return lib.string.reverse(lib.table.concat(digits))
    end),
  })

  -- min and max: of two numbers, characters or strings.
  local function pick(better)
    return function(K, d, pos, a, b, extra)
      if b == nil or extra ~= nil then return nil end
      local ka, kb = R.kind_of(a), R.kind_of(b)
      local numbers = number_type(a) and number_type(b)
      if not numbers and ka ~= kb then return nil end
      if numbers and ka ~= kb then a, b = a + 0.0, b + 0.0 end
      if better(a, b) then return a end
      return b
    end
  end
  for _, kind in next, { "i64", "f64", "string", "char" } do
    add_natives(kind, true, {
      max = pick(function(a, b) return a >= b end),
      min = pick(function(a, b) return a <= b end),
    })
  end

  -- Reading numbers from text

  local function digit(code)
    if code >= 48 and code <= 57 then return code - 48 end
    if code >= 97 and code <= 122 then return code - 87 end
    return 99
  end

  local function parse_int(text, radix, pos)
    local function fail(why)
      R.arithmetic_error(format("Error parsing integer number '%s': %s", text, why), pos)
    end
    if radix < 2 or radix > 36 then R.arithmetic_error(format("Invalid radix: '%d'", radix), pos) end
    local trimmed = lower(R.trim(text))
    if trimmed == "" then fail("cannot parse integer from empty string") end
    local negative = sub(trimmed, 1, 1) == "-"
    local from = (negative or sub(trimmed, 1, 1) == "+") and 2 or 1
    if from > #trimmed then fail("invalid digit found in string") end
    local value = 0
    for i = from, #trimmed do
      local n = digit(byte(trimmed, i))
      if n >= radix then fail("invalid digit found in string") end
      local next_value = value * radix - n -- negative, where there is one more
      if value < (least + n) // radix + ((least + n) % radix == 0 and 0 or 1) then
        fail(negative and "number too small to fit in target type" or "number too large to fit in target type")
      end
      value = next_value
    end
    if negative then return value end
    if value == least then fail("number too large to fit in target type") end
    return -value
  end

  -- Whether a text is a number without sign, going through it only once.
  local function is_float(text)
    local at = match(text, "^%d*()")
    local digits = at - 1
    if sub(text, at, at) == "." then
      local stop = match(text, "^%d*()", at + 1)
      digits, at = digits + stop - at - 1, stop
    end
    if sub(text, at, at) == "e" then at = match(text, "^[-+]?%d+()", at + 1) end
    return digits > 0 and at == #text + 1
  end

  local function parse_float(text, pos)
    local trimmed = R.trim(text)
    local plain = lower(trimmed)
    local sign = match(plain, "^[-+]") or ""
    local rest = sub(plain, #sign + 1)
    local value
    if rest == "inf" or rest == "infinity" then
      value = huge
    elseif rest == "nan" then
      return 0.0 / 0.0
    elseif is_float(rest) then
      value = tonumber(rest) + 0.0
    else
      local why = trimmed == "" and "cannot parse float from empty string" or "invalid float literal"
      R.arithmetic_error(format("Error parsing floating-point number '%s': %s", text, why), pos)
    end
    return sign == "-" and -value or value
  end

  add_natives("string", true, {
    parse_int = function(K, d, pos, text, radix)
      if radix == nil then return parse_int(text, 10, pos) end
      if R.is_int(radix) then return parse_int(text, radix, pos) end
    end,
    parse_float = one(parse_float),
  })

  -- Bits

  local function span(bit, bits, pos)
    local at = R.bit_at(bit, pos)
    if at + bits > 64 or bits > 64 then bits = 64 - at end
    return at, bits == 64 and -1 or (1 << bits) - 1
  end

  local function ends(start, bits)
    if R.is_range(start) then
      local from = start[true] < 0 and 0 or start[true]
      local to = start[false] == most and 64 or start[false]
      local inclusive = R.kind_of(start) == "range=" and start[false] ~= most
      return from, (inclusive and to + 1 or to) - from, true
    end
    return start, bits, false
  end

  add_natives("i64", true, {
    get_bit = function(K, d, pos, value, bit)
      if not R.is_int(bit) then return nil end
      return value & (1 << R.bit_at(bit, pos)) ~= 0
    end,
    get_bits = function(K, d, pos, value, start, count)
      local from, bits = ends(start, count)
      if not R.is_int(from) or not R.is_int(bits) then return nil end
      if bits <= 0 then return 0 end
      local at, mask = span(from, bits, pos)
      return value >> at & mask
    end,
    bits = function(K, d, pos, value, start, count)
      local from, bits = 0, 64
      if start ~= nil then from, bits = ends(start, count or 64) end
      if not R.is_int(from) or not R.is_int(bits) then return nil end
      local at = R.bit_at(from, pos)
      if bits < 0 then bits = 0 elseif at + bits > 64 then bits = 64 - at end
      local items = {}
      for i = 1, bits do items[i] = value & (1 << (at + i - 1)) ~= 0 end
      return R.iterator("BitRange", items, bits)
    end,
  })
  int_properties.bits = function(value) return R.native_of("bits", "i64")(nil, 0, 0, value) end

  add_natives("i64", false, {
    set_bit = function(K, d, pos, value, bit, on)
      if not R.is_int(bit) or type(on) ~= "boolean" then return nil end
      local at = R.bit_at(bit, pos)
      return R.U, on and value | (1 << at) or value & ~(1 << at)
    end,
    set_bits = function(K, d, pos, value, start, count, new)
      local from, bits, is_range = ends(start, count)
      if is_range then new = count end
      if not R.is_int(from) or not R.is_int(bits) or not R.is_int(new) then return nil end
      if bits <= 0 then return R.U, value end
      local at, mask = span(from, bits, pos)
      return R.U, value & ~(mask << at) | (new & mask) << at
    end,
  })
end
