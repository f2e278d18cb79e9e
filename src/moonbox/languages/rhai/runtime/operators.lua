-- Operators: the slow way, for all types, with the reference's errors.
return function(R, lib, host)
  local type, next = lib.type, lib.next
  local number_type, least = lib.math.type, lib.math.mininteger
  local format = lib.string.format
  local getmetatable = lib.debug.getmetatable
  local kind_of, copy, display, check_growth, without = R.kind_of, R.copy, R.display, R.check_growth, R.without
  local ARRAY, MAP, BLOB = R.ARRAY, R.MAP, R.BLOB

  local function joined(left, right, pos)
    local result = left .. right
    if #result > R.max_string then R.too_large("string", pos) end
    return result
  end
  R.joined = joined

  local integer, floating = R.compiler.INTEGERS, R.compiler.FLOATS

  local OVERFLOW = {
    ["+"] = "Addition overflow", ["-"] = "Subtraction overflow", ["*"] = "Multiplication overflow",
    ["/"] = "Division overflow", ["%"] = "Modulo division by zero or overflow", ["**"] = "Exponential overflow",
  }

  -- Why there is no result of two integers.
  local function problem_of(op, b)
    if op == "/" and b == 0 then return "Division by zero" end
    if op == "**" and b < 0 then return "Integer raised to a negative power" end
    return OVERFLOW[op]
  end

  local function append(into, items)
    local count = #into
    for i = 1, #items do into[count + i] = copy(items[i]) end
    return into
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

  -- What no number is part of; nil where the operator does not exist.
  local other = {}
  other["+"] = function(a, b, ka, kb, pos, near)
    if ka == "string" then
      if kb == "string" then return joined(a, b, near) end
      if kb == "char" then return joined(a, b[true], near) end
      if kb == "()" then return a end
      if kb == "blob" then return joined(a, R.bytes_to_text(b[true]), pos) end
      return joined(a, display(b), pos)
    elseif kb == "string" then
      if ka == "char" then return joined(a[true], b, near) end
      if ka == "()" then return b end
      if ka == "blob" then return joined(R.bytes_to_text(a[true]), b, pos) end
      return joined(display(a), b, pos)
    elseif ka == "char" and kb == "char" then
      return a[true] .. b[true]
    elseif ka == "array" and kb == "array" then
      return R.check_value(append(copy(a), b), pos)
    elseif ka == "map" and kb == "map" then
      return R.check_value(merged(copy(a), b), pos)
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
      if ta == "integer" and tb == "integer" then
        local result = integer[op](a, b)
        if result then return result end
        R.arithmetic_error(format("%s: %d %s %d", problem_of(op, b), a, op, b), assigning and pos or nil, pos)
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
end
