-- Operators on numbers and constants, with the reference's results; nothing where the operation fails or is a function's.
return function(C, lib)
  local fmod, least, huge = lib.math.fmod, lib.math.mininteger, lib.math.huge
  local offset, utf8_len, sub = lib.utf8.offset, lib.utf8.len, lib.string.sub
  local EPSILON, LONGEST = 2.0 ^ -52, 200 -- characters of a string that is put together here
  local MOST_POWER = 0xFFFFFFFF

  local COMPARE = {
    ["=="] = function(a, b) return a == b end, ["!="] = function(a, b) return a ~= b end,
    ["<"] = function(a, b) return a < b end, ["<="] = function(a, b) return a <= b end,
    [">"] = function(a, b) return a > b end, [">="] = function(a, b) return a >= b end,
  }

  local function times(a, b)
    local product = a * b
    if a == -1 and b == least or b == -1 and a == least then return nil end
    if a ~= 0 and (product // a ~= b or product % a ~= 0) then return nil end
    return product
  end

  local function quotient(a, b)
    if b == 0 or a == least and b == -1 then return nil end
    local whole = a // b
    return whole < 0 and whole * b ~= a and whole + 1 or whole
  end

  local function power(a, b)
    if b < 0 or b > MOST_POWER then return nil end
    if a == 0 or a == 1 then return b == 0 and 1 or a end
    if a == -1 then return b % 2 == 0 and 1 or -1 end
    local result, base = 1, a
    while b > 0 do
      if b & 1 == 1 then
        result = times(result, base)
        if not result then return nil end
      end
      b = b >> 1
      base = b > 0 and times(base, base)
      if b > 0 and not base then return nil end
    end
    return result
  end

  local function left_shift(a, by) return by < 64 and a << by or 0 end
  local function right_shift(a, by) return by < 63 and a // (1 << by) or a < 0 and -1 or 0 end

  local INTEGERS = {
    ["+"] = function(a, b)
      local sum = a + b
      if (a ~ sum) & (b ~ sum) < 0 then return nil end
      return sum
    end,
    ["-"] = function(a, b)
      local difference = a - b
      if (a ~ b) & (a ~ difference) < 0 then return nil end
      return difference
    end,
    ["*"] = times,
    ["/"] = quotient,
    ["%"] = function(a, b)
      if b == 0 or a == least and b == -1 then return nil end
      return fmod(a, b)
    end,
    ["**"] = power,
    ["<<"] = function(a, b)
      if b >= 0 then return left_shift(a, b) end
      return right_shift(a, b == least and 63 or -b)
    end,
    [">>"] = function(a, b)
      if b >= 0 then return right_shift(a, b) end
      return b == least and 0 or left_shift(a, -b)
    end,
    ["&"] = function(a, b) return a & b end,
    ["|"] = function(a, b) return a | b end,
    ["^"] = function(a, b) return a ~ b end,
  }
  C.INTEGERS = INTEGERS

  local function is_finite(a) return a == a and a ~= huge and a ~= -huge end

  local FLOATS = {
    ["+"] = function(a, b) return a + b end,
    ["-"] = function(a, b) return a - b end,
    ["*"] = function(a, b) return a * b end,
    ["/"] = function(a, b) return a / b end,
    ["%"] = function(a, b)
      a, b = a + 0.0, b + 0.0
      if b == 0 or b ~= b or not is_finite(a) then return 0.0 / 0.0 end
      return fmod(a, b)
    end,
    ["**"] = function(a, b) return (a + 0.0) ^ b end,
  }
  C.FLOATS = FLOATS

  -- A result of floats; nothing where it is left to the run.
  local function folded(op, a, b)
    if not FLOATS[op] or (op == "/" or op == "%") and b == 0 or op == "%" and not is_finite(a) then return nil end
    local value = FLOATS[op](a, b)
    if op == "**" and not is_finite(value) and is_finite(a) and is_finite(b) then return nil end
    return value
  end

  local function abs(a) return a < 0 and -a or a end

  -- Numbers that differ by no more than their last digit are equal.
  local function compare_floats(op, a, b)
    local scale = (a == 0 or b == 0) and 1.0 or abs(a) > abs(b) and abs(a) or abs(b)
    if is_finite(a) and is_finite(b) and abs(a - b) <= EPSILON * scale then return op == "==" or op == "<=" or op == ">=" end
    return COMPARE[op](a, b)
  end

  local function compare_booleans(op, a, b) return COMPARE[op](a and 1 or 0, b and 1 or 0) end

  local BOOLEANS = {
    ["&"] = function(a, b) return a and b end,
    ["|"] = function(a, b) return a or b end,
    ["^"] = function(a, b) return a ~= b end,
  }

  function C.first_two(text)
    local stop = offset(text, 3)
    return stop and sub(text, 1, stop - 1) or text
  end

  local function compare_texts(op, a, b, with_char)
    if with_char then a, b = C.first_two(a), C.first_two(b) end -- a character is compared with the first two of a string
    return COMPARE[op](a, b)
  end

  -- The kind and value of a binary operation on two literals; nothing where it is left to the run.
  function C.combine(op, left, right)
    local a, b, kind, other = left.value, right.value, left.kind, right.kind
    local compares, value = COMPARE[op] ~= nil, nil
    if kind == "int" and other == "int" then
      if compares then return "bool", COMPARE[op](a, b) end
      value = INTEGERS[op](a, b)
      if value then return "int", value end
    elseif (kind == "int" or kind == "float") and (other == "int" or other == "float") then
      a, b = a * 1.0, b * 1.0
      if compares then return "bool", compare_floats(op, a, b) end
      value = folded(op, a, b)
      if value then return "float", value end
    elseif kind == "bool" and other == "bool" then
      if compares then return "bool", compare_booleans(op, a, b) end
      if BOOLEANS[op] then return "bool", BOOLEANS[op](a, b) end
    elseif (kind == "str" or kind == "char") and (other == "str" or other == "char") then
      if compares then return "bool", compare_texts(op, a, b, kind == "char" or other == "char") end
      if op == "+" and #a + #b <= 4 * LONGEST and utf8_len(a) + utf8_len(b) <= LONGEST then return "str", a .. b end
    elseif compares then
      if kind == other then return "bool", op == "==" end -- two ()
      return "bool", op == "!="
    end
    return nil
  end
end
