-- Writing operators: numbers are computed in place, everything else goes to the runtime.
return function(C, lib)
  local emit, tick, temp, call, use, cut = C.emit, C.tick, C.temp, C.call, C.use, C.cut
  local own, held, read, literal, operand = C.own, C.held, C.read, C.literal, C.operand
  local NUMBERS, COMPARISONS, type_of = C.NUMBERS, C.COMPARISONS, C.type_of
  local number, quote = C.number, C.quote
  local rep, concat = lib.string.rep, lib.table.concat
  local utf8_len = lib.utf8.len
  local MOST, LEAST, HALF = lib.math.maxinteger, lib.math.mininteger, 2147483647
  local ORDER = C.words("< <= > >=")
  local NAMES = {
    ["+"] = "add", ["-"] = "sub", ["*"] = "mul", ["/"] = "div", ["%"] = "mod", ["**"] = "pow", ["<<"] = "shl", [">>"] = "shr",
    ["&"] = "band", ["|"] = "bor", ["^"] = "bxor",
  }
  local BITS = { ["&"] = "&", ["|"] = "|", ["^"] = "~" }

  local function pair(W, left, right)
    local first = held(W, C.write_expr(W, left), right.from, right.to)
    return first, C.write_expr(W, right)
  end
  C.write_pair = pair

  -- The condition under which a product may not fit into 64 bits.
  local function product_overflow(left, right)
    local known, other = left, right
    if right.literal then known, other = right, left end
    local amount = known.literal
    if amount then
      if amount == 0 or amount == 1 then return "" end
      if amount == -1 or amount == LEAST then
        -- The least number has no opposite; only 0 and 1 times it fit, and the slow way knows that.
        return amount == -1 and other.text .. "==" .. number(LEAST) or other.text .. "~=0"
      end
      local bound = MOST // (amount < 0 and -amount or amount)
      return other.text .. ">" .. bound .. " or " .. other.text .. "<" .. number(-bound)
    end
    local a, b, low = left.text, right.text, number(-HALF)
    return a .. ">" .. HALF .. " or " .. a .. "<" .. low .. " or " .. b .. ">" .. HALF .. " or " .. b .. "<" .. low
  end

  -- The condition under which 64 bits are not enough; nil where only the signs tell.
  local function overflow(op, left, right)
    if op == "*" then return product_overflow(left, right) end
    local known, other = left, right
    if right.literal then known, other = right, left end
    local step = known.literal
    if not step or op == "-" and known == left then return nil end
    if op == "-" then
      if step == LEAST then return other.text .. ">(-1)" end
      step = -step
    end
    if step == 0 then return "" end
    if step > 0 then return other.text .. ">" .. number(MOST - step) end
    return other.text .. "<" .. number(LEAST - step)
  end

  -- Lua's own operator, and the slow way where it overflows or does not apply.
  local function checked(W, op, dest, left, right, slow)
    local a, b = left.text, right.text
    emit(W, dest .. "=" .. a .. " " .. op .. " " .. b)
    local numbers = NUMBERS[left.type] and NUMBERS[right.type]
    if numbers and (left.type == "float" or right.type == "float") then return end
    -- Lua's operator gives nil for all that are not numbers: the runtime's metatables see to that.
    local too_large = overflow(op, left, right)
    if not too_large then
      local apart, same = ">=0", "<0"
      if op == "+" then apart, same = "<0", ">=0" end
      local first = numbers and "if " or "if not " .. dest .. " then " .. slow .. " elseif "
      emit(W, first .. a .. ">=0 then if " .. b .. same .. " and " .. dest .. "<0 then " .. slow .. " end elseif "
        .. b .. apart .. " and " .. dest .. ">=0 then " .. slow .. " end")
    elseif too_large ~= "" then
      emit(W, "if " .. (numbers and "" or "not " .. dest .. " or ") .. too_large .. " then " .. slow .. " end")
    elseif not numbers then
      emit(W, "if not " .. dest .. " then " .. slow .. " end")
    end
  end

  -- Writes `dest = left op right`; with `assign` for an assignment with an operator.
  local function arithmetic(W, op, dest, left, right, pos, assign)
    local a, b = left.text, right.text
    local helper = assign and NAMES[op] .. "_set" or NAMES[op]
    local slow = dest .. "=" .. use(W, helper) .. "(" .. a .. "," .. b .. "," .. pos .. ")"
    local integers = left.type == "int" and right.type == "int"
    if op == "+" or op == "-" or op == "*" then
      checked(W, op, dest, left, right, slow)
    elseif op == "/" and NUMBERS[left.type] and NUMBERS[right.type] and (left.type == "float" or right.type == "float") then
      emit(W, dest .. "=" .. a .. "/" .. b)
    elseif op == "%" or op == "/" and integers then
      local conditions = {}
      if not left.literal or left.literal < 0 then conditions[1] = a .. ">=0" end
      if not right.literal or right.literal <= 0 then conditions[#conditions + 1] = b .. ">0" end
      local fast = dest .. "=" .. a .. (op == "%" and "%" or "//") .. b
      if conditions[1] then
        emit(W, "if " .. concat(conditions, " and ") .. " then " .. fast .. " else " .. slow .. " end")
      else
        emit(W, fast)
      end
    elseif BITS[op] and integers then
      emit(W, dest .. "=" .. a .. BITS[op] .. b)
    else
      emit(W, slow)
    end
  end
  C.write_arithmetic = arithmetic

  -- Whether Lua's equality with this operand is Rhai's: a character also equals a string of that character.
  local function equal_natively(expr, value)
    local kind = value.type
    if NUMBERS[kind] or kind == "bool" or kind == "unit" then return true end
    return expr.t == "literal" and expr.kind == "str" and utf8_len(expr.value) ~= 1
  end

  -- The Lua expression of a comparison of two operands.
  local function compared(W, expr, left, right)
    local op, a, b, pos = expr.op, left.text, right.text, expr.pos
    local with_float = left.type == "float" or right.type == "float"
    if op == "==" or op == "!=" then
      if not with_float and (equal_natively(expr.left, left) or equal_natively(expr.right, right)) then
        return a .. (op == "==" and "==" or "~=") .. b
      end
      local equal = "(" .. a .. "==" .. b .. " or " .. use(W, "eq") .. "(" .. a .. "," .. b .. "," .. pos .. "))"
      return op == "==" and equal or "not " .. equal
    end
    if with_float then
      local strict = op == "<" or op == ">"
      local near = call(W, strict and "apart" or "not_apart", a, b)
      return "(" .. a .. op .. b .. (strict and " and " or " or ") .. near .. ")"
    end
    if NUMBERS[left.type] or NUMBERS[right.type] or left.type == "str" and right.type == "str" then return a .. op .. b end
    local result = temp(W)
    local failed = call(W, "uncomparable", quote(op), a, b, pos)
    emit(W, result .. "=" .. a .. op .. b)
    if op == "<=" or op == ">=" then
      local equal = result .. "=" .. call(W, "not_apart", a, b)
      emit(W, "if not " .. result .. " then if E[1] then " .. failed .. " end " .. equal .. " end")
    else -- only floats differ by less than 1
      local apart = op == "<" and b .. "-" .. a or a .. "-" .. b
      emit(W, "if " .. result .. " then if (" .. apart .. " or 1)<1 then " .. result .. "=" .. call(W, "apart", a, b)
        .. " end elseif E[1] then " .. failed .. " end")
    end
    return result
  end

  -- The Lua expression of a comparison; what it needs before it is written.
  local function comparison(W, expr)
    local left, right = pair(W, expr.left, expr.right)
    return compared(W, expr, left, right)
  end

  C.write_binary = C.into_temporary(function(W, expr, dest)
    if COMPARISONS[expr.op] then
      emit(W, dest .. "=" .. comparison(W, expr))
    else
      local left, right = pair(W, expr.left, expr.right)
      arithmetic(W, expr.op, dest, left, right, expr.pos)
    end
    return type_of(expr, W.analysis)
  end)

  C.write_unary = C.into_temporary(function(W, expr, dest)
    if expr.op ~= "!" then
      local inner = C.write_expr(W, expr.operand).text
      tick(W, expr.pos)
      emit(W, dest .. "=" .. call(W, expr.op == "-" and "neg" or "plus", inner, expr.pos))
    elseif type_of(expr.operand, W.analysis) == "bool" then
      emit(W, dest .. "=not (" .. C.write_condition(W, expr.operand) .. ")")
    else
      local inner = C.write_expr(W, expr.operand).text
      emit(W, "if " .. inner .. "==true then " .. dest .. "=false elseif " .. inner .. "==false then " .. dest .. "=true else "
        .. dest .. "=" .. call(W, "bang", inner, expr.pos) .. " end")
    end
    return type_of(expr, W.analysis)
  end)

  C.write_logic = C.into_temporary(function(W, expr, dest)
    local fn, items = W.fn, expr.items
    local mark = fn.top
    local test = expr.op == "&&" and dest or expr.op == "||" and "not " .. dest or dest .. "==U"
    for at = 1, #items do
      if at > 1 then
        emit(W, "if " .. test .. " then")
        cut(W)
      end
      if expr.op == "??" then
        emit(W, dest .. "=" .. own(W, C.write_expr(W, items[at])).text)
      else
        emit(W, dest .. "=" .. C.write_condition(W, items[at]))
        fn.top = mark
      end
    end
    emit(W, rep("end ", #items - 1))
    cut(W)
    return expr.op ~= "??" and "bool" or "any"
  end)

  -- Expressions as one piece of Lua, without anything before it

  local inline

  local function inline_comparison(W, expr)
    local left = inline(W, expr.left)
    local right = left and inline(W, expr.right)
    if not right or left.type == "bool" or right.type == "bool" then return nil end
    local ordered = NUMBERS[left.type] or NUMBERS[right.type] or left.type == "str" and right.type == "str"
    if ORDER[expr.op] and not ordered then return nil end
    return operand(compared(W, expr, left, right), "bool")
  end

  local INLINE = {
    literal = literal,
    variable = function(W, expr)
      local var = expr.var
      if not var or var.cell then return nil end
      return { text = read(W, var), type = var.type, owned = false, var = var }
    end,
    binary = function(W, expr) return COMPARISONS[expr.op] and inline_comparison(W, expr) or nil end,
    logic = function(W, expr)
      if expr.op == "??" then return nil end
      local texts = {}
      for at = 1, #expr.items do
        local item = inline(W, expr.items[at])
        if not item or item.type ~= "bool" then return nil end
        texts[at] = item.text
      end
      return operand("(" .. concat(texts, expr.op == "&&" and " and " or " or ") .. ")", "bool")
    end,
    unary = function(W, expr)
      local inner = expr.op == "!" and inline(W, expr.operand)
      return inner and inner.type == "bool" and operand("not (" .. inner.text .. ")", "bool") or nil
    end,
  }

  -- The operand, or nil where something must come before it.
  function inline(W, expr)
    local handler = INLINE[expr.t]
    return handler and handler(W, expr)
  end
  C.inline = inline

  -- Counts the operations of an expression that was written inline.
  local function tick_inline(W, expr)
    tick(W, expr.pos)
    if expr.t == "binary" then
      tick_inline(W, expr.left)
      tick_inline(W, expr.right)
    elseif expr.t == "logic" then
      for at = 1, #expr.items do tick_inline(W, expr.items[at]) end
    elseif expr.t == "unary" then
      tick_inline(W, expr.operand)
    end
  end
  C.tick_inline = tick_inline

  -- A Lua expression that is true or false, and nothing else.
  function C.write_condition(W, expr)
    local value = inline(W, expr)
    if value and value.type == "bool" then
      tick_inline(W, expr)
      return value.text
    end
    if expr.t == "binary" and COMPARISONS[expr.op] then
      tick(W, expr.pos)
      return comparison(W, expr)
    end
    value = C.write_expr(W, expr)
    if value.type == "bool" then return value.text end
    local text = value.text
    if lib.string.byte(text) ~= 116 then -- no temporary
      text = temp(W)
      emit(W, text .. "=" .. value.text)
    end
    emit(W, "if " .. text .. "~=true and " .. text .. "~=false then " .. call(W, "not_bool", text, expr.pos) .. " end")
    return text
  end
end
