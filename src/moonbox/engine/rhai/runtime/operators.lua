-- Operators: the slow way, for all types, with the reference's errors.
return function(R, lib, host)
  local type, next = lib.type, lib.next
  local number_type, fmod, tointeger = lib.math.type, lib.math.fmod, lib.math.tointeger
  local least, most = lib.math.mininteger, lib.math.maxinteger
  local huge, epsilon = lib.math.huge, 2.0 ^ -52
  local format, find, sub, gsub = lib.string.format, lib.string.find, lib.string.sub, lib.string.gsub
  local move, offset = lib.table.move, lib.utf8.offset
  local getmetatable = lib.debug.getmetatable
  local U, kind_of, copy, display = R.U, R.kind_of, R.copy, R.display
  local ARRAY, MAP, CHAR, BLOB, TIME, FN = R.ARRAY, R.MAP, R.CHAR, R.BLOB, R.TIME, R.FN
  local RANGE, RANGE_INCLUSIVE = R.RANGE, R.RANGE_INCLUSIVE
  local E = {}
  R.E = E -- E[1] is set when two values were compared that cannot be

  local function joined(left, right, pos)
    local result = left .. right
    if #result > R.max_string then R.too_large("string", pos) end
    return result
  end
  R.joined = joined

  -- Integers: the result, or nil and why not.
  local integer = {}
  integer["+"] = function(a, b)
    local r = a + b
    if (a ~ r) & (b ~ r) < 0 then return nil, "Addition overflow" end
    return r
  end
  integer["-"] = function(a, b)
    local r = a - b
    if (a ~ b) & (a ~ r) < 0 then return nil, "Subtraction overflow" end
    return r
  end
  integer["*"] = function(a, b)
    local r = a * b
    if a ~= 0 and ((a == -1 and b == least) or (b == -1 and a == least) or (a ~= -1 and b ~= -1 and r // a ~= b or r % a ~= 0)) then
      return nil, "Multiplication overflow"
    end
    return r
  end
  integer["/"] = function(a, b)
    if b == 0 then return nil, "Division by zero" end
    if a == least and b == -1 then return nil, "Division overflow" end
    local q = a // b
    if q < 0 and q * b ~= a then q = q + 1 end
    return q
  end
  integer["%"] = function(a, b)
    if b == 0 or (a == least and b == -1) then return nil, "Modulo division by zero or overflow" end
    return fmod(a, b)
  end
  integer["**"] = function(a, b)
    if b < 0 then return nil, "Integer raised to a negative power" end
    if b > 0xFFFFFFFF then return nil, "Exponential overflow" end
    local result, base = 1, a
    if a == 0 or a == 1 then return b == 0 and 1 or a end
    if a == -1 then return b % 2 == 0 and 1 or -1 end
    while b > 0 do
      if b & 1 == 1 then
        result = integer["*"](result, base)
        if not result then return nil, "Exponential overflow" end
      end
      b = b >> 1
      if b > 0 then
        base = integer["*"](base, base)
        if not base then return nil, "Exponential overflow" end
      end
    end
    return result
  end
  local function shift(a, by)
    if by < 0 then
      by = by == least and most or -by
      if by >= 64 then return a < 0 and -1 or 0 end
      local r = a >> by
      return a < 0 and by > 0 and r | ~(-1 >> by) or r
    end
    return by >= 64 and 0 or a << by
  end
  integer["<<"] = shift
  integer[">>"] = function(a, by) return shift(a, by == least and most or -by) end
  integer["&"] = function(a, b) return a & b end
  integer["|"] = function(a, b) return a | b end
  integer["^"] = function(a, b) return a ~ b end

  local floating = {
    ["+"] = function(a, b) return a + b end,
    ["-"] = function(a, b) return a - b end,
    ["*"] = function(a, b) return a * b end,
    ["/"] = function(a, b) return a / b end,
    ["%"] = function(a, b)
      a, b = a + 0.0, b + 0.0
      if b == 0 or a ~= a or b ~= b or a == lib.math.huge or a == -lib.math.huge then return 0.0 / 0.0 end
      return fmod(a, b)
    end,
    ["**"] = function(a, b) return (a + 0.0) ^ b end,
  }

  local byte = lib.string.byte
  local function find_long(text, what, from)
    local size, same = #what, { [0] = 0 }
    for i = 2, size do
      local k = same[i - 1] or 0
      local here = byte(what, i)
      while k > 0 and byte(what, k + 1) ~= here do k = same[k] or 0 end
      same[i] = byte(what, k + 1) == here and k + 1 or 0
    end
    local k = 0
    for i = from, #text do
      local here = byte(text, i)
      while k > 0 and byte(what, k + 1) ~= here do k = same[k] or 0 end
      if byte(what, k + 1) == here then k = k + 1 end
      if k == size then return i - size + 1, i end
    end
    return nil
  end
  -- The first and last byte of a part. Lua's own search takes the product of both sizes when both repeat themselves, and
  -- nothing can interrupt it.
  local function find_text(text, what, from)
    if #text * #what < 200000000 then return find(text, what, from, true) end
    return find_long(text, what, from)
  end
  R.find_text = find_text

  local function without(text, what)
    if what == "" then return text end
    local parts, from = {}, 1
    while true do
      local start, stop = find_text(text, what, from)
      if not start then break end
      parts[#parts + 1] = sub(text, from, start - 1)
      from = stop + 1
    end
    parts[#parts + 1] = sub(text, from)
    return lib.table.concat(parts)
  end
  R.without = without

  local function append(into, items)
    local count = #into
    for i = 1, #items do into[count + i] = copy(items[i]) end
    return into
  end

  -- An array or map after it grew. Elements of elements are counted each time while there are few, later now and then.
  local function check_growth(value, pos, item)
    local meta = getmetatable(value)
    if meta == ARRAY then
      local count = #value
      if count > R.max_array then R.too_large("array", pos) end
      if item ~= nil and type(item) ~= "table" and type(item) ~= "string" then return end
      if count > 64 and count & (count - 1) ~= 0 then return end
    elseif meta == MAP then
      local count = value[true]
      if count > R.max_map then R.too_large("map", pos) end
      if item ~= nil and type(item) ~= "table" and type(item) ~= "string" then return end
      if count > 64 and count & (count - 1) ~= 0 then return end
    end
    if R.limited then
      local arrays, maps, strings = R.sizes(value)
      if strings > R.max_string then R.too_large("string", pos) end
      if arrays > R.max_array then R.too_large("array", pos) end
      if maps > R.max_map then R.too_large("map", pos) end
    end
  end
  R.check_growth = check_growth

  -- A value that was made at once.
  local function check_value(value, pos)
    if R.limited then
      local arrays, maps, strings = R.sizes(value)
      if strings > R.max_string then R.too_large("string", pos) end
      if arrays > R.max_array then R.too_large("array", pos) end
      if maps > R.max_map then R.too_large("map", pos) end
    end
    return value
  end
  R.check_value = check_value

  -- A function that is told of each item of something new while it grows.
  function R.meter(pos)
    local arrays, maps, strings = 0, 0, 0
    return function(item)
      local kind = type(item)
      if kind == "string" then
        strings = strings + #item
      elseif kind == "table" then
        local a, m, s = R.sizes(item)
        arrays, maps, strings = arrays + a, maps + m, strings + s
      else
        return
      end
      if strings > R.max_string then R.too_large("string", pos) end
      if arrays > R.max_array then R.too_large("array", pos) end
      if maps > R.max_map then R.too_large("map", pos) end
    end
  end

  -- A literal that holds other arrays or maps, item by item: the message names the one that is too much.
  -- `places` lists a position for each item of an array, a quoted key and a position for each entry of a map.
  local function check_items(value, is_array, places)
    local arrays, maps, strings = 0, 0, 0
    for i = 1, #places, is_array and 1 or 2 do
      local a, m, s = R.sizes(value[is_array and i or places[i]])
      arrays, maps, strings = arrays + a, maps + m, strings + s
      if is_array then arrays = arrays + 1 else maps = maps + 1 end
      local pos = places[is_array and i or i + 1]
      if strings > R.max_string then R.too_large("string", pos) end
      if arrays > R.max_array then R.too_large("array", pos) end
      if maps > R.max_map then R.too_large("map", pos) end
    end
  end
  function R.check_literal(value, places)
    local is_array = getmetatable(value) == ARRAY
    local large = is_array and #value > R.max_array or not is_array and value[true] > R.max_map
    if not large then
      local arrays, maps, strings = R.sizes(value)
      large = arrays > R.max_array or maps > R.max_map or strings > R.max_string
    end
    if large then check_items(value, is_array, places()) end
  end

  local function merged(left, right)
    local count = left[true]
    for key, item in next, right do
      if key ~= true then
        if left[key] == nil then count = count + 1 end
        left[key] = copy(item)
      end
    end
    left[true] = count
    return left
  end
  R.merged = merged

  local function seconds(value)
    return number_type(value) and value + 0.0
  end

  local function utf8_lossy(bytes) return R.bytes_to_text(bytes) end

  -- What no number is part of; nil where the operator does not exist.
  local other = {}
  other["+"] = function(a, b, ka, kb, pos, near)
    if ka == "string" then
      if kb == "string" then return joined(a, b, near) end
      if kb == "char" then return joined(a, b[true], near) end
      if kb == "()" then return a end
      if kb == "blob" then return joined(a, utf8_lossy(b[true]), pos) end
      return joined(a, display(b), pos)
    elseif kb == "string" then
      if ka == "char" then return joined(a[true], b, near) end
      if ka == "()" then return b end
      if ka == "blob" then return joined(utf8_lossy(a[true]), b, pos) end
      return joined(display(a), b, pos)
    elseif ka == "char" and kb == "char" then
      return a[true] .. b[true]
    elseif ka == "array" and kb == "array" then
      return check_value(append(copy(a), b), pos)
    elseif ka == "map" and kb == "map" then
      return check_value(merged(copy(a), b), pos)
    elseif ka == "blob" and (kb == "blob" or kb == "char") then
      local result = copy(a)
      R.blob_append(result, b, pos)
      return result
    elseif ka == "timestamp" and number_type(b) then
      return R.timestamp_moved(a, b, 1, pos)
    end
  end
  other["-"] = function(a, b, ka, kb, pos)
    if ka == "string" and kb == "string" then return without(a, b) end
    if ka == "string" and kb == "char" then return without(a, b[true]) end
    if ka == "timestamp" then
      if kb == "timestamp" then return a[true] - b[true] end
      if number_type(b) then return R.timestamp_moved(a, b, -1, pos) end
    end
  end
  local function booleans(operation)
    return function(a, b, ka, kb)
      if ka == "bool" and kb == "bool" then return operation(a, b) end
    end
  end
  other["&"] = booleans(function(a, b) return a and b end)
  other["|"] = booleans(function(a, b) return a or b end)
  other["^"] = booleans(function(a, b) return a ~= b end)

  -- `a op b`. The reference gives arithmetic errors of plain operators no position, those of assignments one.
  local function operate(op, a, b, pos, assigning)
    local ta, tb = number_type(a), number_type(b)
    if ta and tb then
      local result, problem
      if ta == "integer" and tb == "integer" then
        result, problem = integer[op](a, b)
        if result then return result end
        R.arithmetic_error(format("%s: %d %s %d", problem, a, op, b), assigning and pos or nil, pos)
      end
      local operation = floating[op]
      if operation then return operation(a, b) end
    end
    local operation = other[op]
    local result = operation and operation(a, b, kind_of(a), kind_of(b), pos, assigning and pos or nil)
    if result == nil then R.not_found(op, pos, a, b) end
    return result
  end
  R.operate = operate

  -- `a op= b` where that is more than `a = a op b`.
  local function assign(op, a, b, pos)
    if op == "+" and type(a) == "table" then
      local meta = getmetatable(a)
      if meta == ARRAY then
        if R.is_array(b) then
          append(a, b == a and copy(b) or b)
          check_growth(a, pos)
        else
          local item = copy(b)
          a[#a + 1] = item
          check_growth(a, pos, item)
        end
        return a
      elseif meta == MAP and R.is_map(b) then
        merged(a, b)
        check_growth(a, pos)
        return a
      elseif meta == BLOB and R.blob_append(a, b, pos) then
        return a
      end
    end
    return operate(op, a, b, pos, true)
  end
  R.assign = assign

  for op, name in next, {
    ["+"] = "add", ["-"] = "sub", ["*"] = "mul", ["/"] = "div", ["%"] = "mod", ["**"] = "pow",
    ["<<"] = "shl", [">>"] = "shr", ["&"] = "band", ["|"] = "bor", ["^"] = "bxor",
  } do
    R[name] = function(a, b, pos) return operate(op, a, b, pos, false) end
    R[name .. "_set"] = function(a, b, pos) return assign(op, a, b, pos) end
  end

  function R.neg(a, pos)
    local kind = number_type(a)
    if kind == "float" then return -a end
    if kind ~= "integer" then R.not_found("-", pos, a) end
    if a == least then R.arithmetic_error(format("Negation overflow: -%d", a), pos) end
    return -a
  end
  function R.plus(a, pos)
    if not number_type(a) then R.not_found("+", pos, a) end
    return a
  end
  function R.bang(a, pos) R.not_found("!", pos, a) end

  -- Comparisons

  local function two_chars(text)
    local third = offset(text, 3)
    return third and sub(text, 1, third - 1) or text
  end

  local function ordered(a, b, or_equal)
    local ka, kb = kind_of(a), kind_of(b)
    if ka == "char" and kb == "char" then a, b = a[true], b[true]
    elseif ka == "char" and kb == "string" then a, b = a[true], two_chars(b)
    elseif ka == "string" and kb == "char" then a, b = two_chars(a), b[true]
    elseif ka == "timestamp" and kb == "timestamp" then a, b = a[true], b[true]
    elseif ka == "bool" and kb == "bool" then a, b = a and 1 or 0, b and 1 or 0
    elseif ka ~= kb or ka == "()" then return false
    else
      E[1] = true
      return false
    end
    if or_equal then return a <= b end
    return a < b
  end
  local function less(a, b) return ordered(a, b, false) end
  local function less_or_equal(a, b) return ordered(a, b, true) end
  for _, meta in next, R.types do meta.__lt, meta.__le = less, less_or_equal end
  R.string_type.__lt, R.string_type.__le = less, less_or_equal
  R.boolean_type.__lt, R.boolean_type.__le = less, less_or_equal

  function R.uncomparable(op, a, b, pos)
    E[1] = nil
    R.not_found(op, pos, a, b)
  end

  local equal, equal_inside

  local function equal_arrays(a, b)
    local count = #a
    if count ~= #b then return false end
    for i = 1, count do
      if not equal_inside(a[i], b[i]) then return false end
    end
    return true
  end

  local function equal_maps(a, b)
    if a[true] ~= b[true] then return false end
    for key, x in next, a do
      local y = b[key]
      if y == nil or not equal_inside(x, y) then return false end
    end
    return true
  end

  -- Goes down without Lua's == on tables, which is allowed to call itself only some 190 times.
  function equal_inside(x, y)
    if type(x) == "table" and type(y) == "table" then
      local meta = getmetatable(x)
      if meta == ARRAY then return getmetatable(y) == ARRAY and equal_arrays(x, y) end
      if meta == MAP then return getmetatable(y) == MAP and equal_maps(x, y) end
    end
    return x == y or equal(x, y)
  end

  local function equal_blobs(a, b)
    a, b = a[true], b[true]
    if #a ~= #b then return false end
    for i = 1, #a do
      if a[i] ~= b[i] then return false end
    end
    return true
  end

  local function same_type(compare)
    return function(a, b) return getmetatable(a) == getmetatable(b) and compare(a, b) end
  end
  ARRAY.__eq, MAP.__eq, BLOB.__eq = same_type(equal_arrays), same_type(equal_maps), same_type(equal_blobs)
  RANGE.__eq = same_type(function(a, b) return a[true] == b[true] and a[false] == b[false] end)
  RANGE_INCLUSIVE.__eq = RANGE.__eq
  TIME.__eq = same_type(function(a, b) return a[true] == b[true] end)

  -- Whether two numbers, one of them a float, differ by no more than their last digit.
  local function near(a, b)
    if number_type(a) == "integer" and number_type(b) == "integer" then return false end
    local apart, x, y = a - b, a < 0 and -a or a, b < 0 and -b or b
    if apart < 0 then apart = -apart end
    if x == 0 or y == 0 then return apart <= epsilon end
    local larger = x > y and x or y
    return larger < huge and apart <= larger * epsilon
  end
  function R.not_apart(a, b) return type(a) == "number" and type(b) == "number" and near(a, b) end
  function R.apart(a, b) return not R.not_apart(a, b) end

  -- What Lua's == leaves out: floats that are near, a character and the string of that character.
  function equal(a, b)
    if type(a) == "number" then return type(b) == "number" and near(a, b) end
    if type(a) == "string" then return type(b) == "table" and getmetatable(b) == CHAR and two_chars(a) == b[true] end
    return type(b) == "string" and type(a) == "table" and getmetatable(a) == CHAR and two_chars(b) == a[true]
  end
  function R.eq(a, b, pos)
    if type(a) == "table" and getmetatable(a) == FN and type(b) == "table" and getmetatable(b) == FN then
      R.not_found("==", pos, a, b)
    end
    return equal(a, b)
  end
  function R.equals(a, b) return a == b or equal(a, b) end

  -- Equal in type as well, as the cases of a switch are.
  local function same(a, b)
    if kind_of(a) ~= kind_of(b) then return false end
    if R.is_array(a) then
      if #a ~= #b then return false end
      for i = 1, #a do
        if not same(a[i], b[i]) then return false end
      end
      return true
    elseif R.is_map(a) then
      if a[true] ~= b[true] then return false end
      for key, item in next, a do
        if b[key] == nil or not same(item, b[key]) then return false end
      end
      return true
    end
    return a == b
  end
  R.same = same

  function R.in_range(value, range)
    if number_type(value) then
      local inclusive = getmetatable(range) == RANGE_INCLUSIVE
      return value >= range[true] and (value < range[false] or (inclusive and value == range[false]))
    end
    return same(value, range)
  end

  -- Ranges

  function R.range(from, to, inclusive, pos)
    local first = from == U and 0 or from
    local last = to == U and most or to
    if number_type(first) ~= "integer" or number_type(last) ~= "integer" then
      R.not_found(inclusive and "..=" or "..", pos, from, to)
    end
    return R.new_range(first, last, inclusive)
  end

  -- The first and last number of a `for` over a range.
  function R.ends(from, to, inclusive, pos)
    if number_type(from) ~= "integer" or number_type(to) ~= "integer" then
      local range = R.range(from, to, inclusive, pos)
      from, to = range[true], range[false]
    end
    if inclusive then return from, to end
    if to == least then return 1, 0 end
    return from, to - 1
  end

  local counting = {
    __index = function(range, n) return range[true] + n - 1 end,
  }
  -- What `for` goes through: a table of elements and their number.
  function R.iterate(value, pos)
    local kind = kind_of(value)
    if kind == "array" then return value, #value end
    if kind == "range" or kind == "range=" then
      local from, to = value[true], value[false]
      local count = to - from + (kind == "range=" and 1 or 0)
      if to < from then count = 0 elseif count < 0 then count = most end
      return lib.setmetatable({ [true] = from }, counting), count
    elseif kind == "string" then
      local chars = R.chars_of(value)
      return chars, #chars
    elseif kind == "blob" then
      return value[true], #value[true]
    elseif kind == "iterator" then
      return value[true], value[false].count
    end
    local hint = kind == "map" and "go through the keys of a map: for key in map.keys() { ... }"
      or kind == "i64" and "go through a range: for i in 0..n { ... }" or nil
    R.raise("ErrorFor", "For loop expects iterable type", pos, nil, hint)
  end
end
