-- Comparison: what is equal, what comes first.
return function(R, lib, host)
  local type, next = lib.type, lib.next
  local number_type, huge = lib.math.type, lib.math.huge
  local two_chars = R.compiler.first_two
  local getmetatable = lib.debug.getmetatable
  local kind_of = R.kind_of
  local ARRAY, MAP, CHAR, BLOB, TIME, FN, RANGE, RANGE_INCLUSIVE = R.ARRAY, R.MAP, R.CHAR, R.BLOB, R.TIME, R.FN, R.RANGE, R.RANGE_INCLUSIVE
  local epsilon = 2.0 ^ -52
  local E = {}
  R.E = E -- E[1] is set when two values were compared that cannot be

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

  local function equal_arrays(a, b, test)
    test = test or equal_inside
    local count = #a
    if count ~= #b then return false end
    for i = 1, count do
      if not test(a[i], b[i]) then return false end
    end
    return true
  end

  local function equal_maps(a, b, test)
    test = test or equal_inside
    if a[true] ~= b[true] then return false end
    for key, x in next, a do
      local y = b[key]
      if y == nil or not test(x, y) then return false end
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

  local function same_type(compare)
    return function(a, b) return getmetatable(a) == getmetatable(b) and compare(a, b) end
  end
  ARRAY.__eq, MAP.__eq = same_type(equal_arrays), same_type(equal_maps)
  BLOB.__eq = same_type(function(a, b) return equal_arrays(a[true], b[true]) end)
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
    if R.is_array(a) then return equal_arrays(a, b, same) end
    if R.is_map(a) then return equal_maps(a, b, same) end
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
end
