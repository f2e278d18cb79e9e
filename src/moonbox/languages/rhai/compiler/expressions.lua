-- The parser of expressions: operators by precedence, and what may follow an operand.
return function(C, lib)
  local take, accept, deeper = C.take, C.accept, C.deeper
  local fail, fail_at, fail_taken, missing, unexpected = C.fail, C.fail_at, C.fail_taken, C.missing, C.unexpected
  local PRECEDENCE, RESERVED, start_of = C.PRECEDENCE, C.RESERVED, C.start_of
  local least, move, insert = lib.math.mininteger, lib.table.move, lib.table.insert
  local ENDS_A_RANGE = C.words("] ) } , ; =>")
  local JUMPS = C.words("break continue return throw")
  local LONGEST_PATH, NONE = 8, C.NONE

  -- What can be refused while parsing: conditions that are never boolean, indexes that never fit.

  local KINDS = {
    unit = "()", bool = "a boolean", int = "a number", float = "a floating-point number", char = "a character",
    str = "a string",
  }
  local OF_NODES = { interpolated = "a string", array = "an array", map = "an object map" }

  -- The kind of value that an expression always has, where that is known.
  local function kind_of(expr)
    if expr.t == "literal" then return KINDS[expr.kind] end
    return OF_NODES[expr.t]
  end

  function C.must_be_boolean(P, expr)
    local what = kind_of(expr)
    if what and what ~= "a boolean" then fail_at(P, "Expecting a boolean expression, not " .. what, start_of(expr)) end
    return expr
  end

  function C.must_be_iterable(P, expr)
    local what = kind_of(expr)
    if what and what ~= "a string" and what ~= "an array" then
      local hint = what == "an object map" and "iterate over the keys of a map: for key in map.keys() { ... }" or nil
      fail_at(P, "Expecting an iterable value, not " .. what, start_of(expr), hint)
    end
    return expr
  end

  local function kind_of_index(index)
    if index.t == "logic" then return index.op ~= "??" and "a boolean" or nil end
    if index.t == "interpolated" then return "a string" end
    if index.t ~= "literal" then return nil end
    return index.kind == "float" and "a float" or KINDS[index.kind]
  end

  -- Fails if a literal can never be indexed like this.
  local function check_index(P, base, index)
    local is_map = base.t == "map"
    local is_list = base.t == "array" or base.t == "interpolated"
      or base.t == "literal" and (base.kind == "int" or base.kind == "str")
    local what = (is_map or is_list) and kind_of_index(index)
    if not what then return end
    local at = start_of(index)
    if is_map then
      if what ~= "a string" then fail_at(P, "Object map expects string index, not " .. what, at) end
    elseif what == "a string" then
      fail_at(P, "Array, string or bit-field expects numeric index, not a string", at)
    elseif what ~= "a number" then
      fail_at(P, "Array, string or bit-field expects integer index, not " .. what, at)
    end
  end

  -- Operators

  local function precedence(P)
    if P.kind == "reserved" and not C.is_identifier(P.value) then fail(P, "Unknown operator: '" .. P.value .. "'", P.pos) end
    return PRECEDENCE[P.kind] or 0
  end

  -- Operands of the same operator are one list.
  local function logic(op, left, right, pos)
    local joins = right.t == "logic" and right.op == op
    if left.t == "logic" and left.op == op then
      if joins then
        move(right.items, 1, #right.items, #left.items + 1, left.items)
      else
        left.items[#left.items + 1] = right
      end
      return left
    end
    if joins then
      insert(right.items, 1, left)
      right.pos = pos
      return right
    end
    return { t = "logic", op = op, items = { left, right }, pos = pos }
  end

  local function combined(P, op, pos, left, right)
    if op == "&&" or op == "||" then
      C.must_be_boolean(P, left)
      C.must_be_boolean(P, right)
      return logic(op, left, right, pos)
    elseif op == "??" then
      return logic(op, left, right, pos)
    elseif op == "in" or op == "!in" then
      local contains = { t = "call", name = "contains", args = { right, left }, pos = pos, infix = true }
      return op == "in" and contains or { t = "unary", op = "!", operand = contains, pos = pos }
    elseif op == ".." or op == "..=" then
      return { t = "range", left = left, right = right, inclusive = op == "..=", pos = pos }
    end
    return { t = "binary", op = op, left = left, right = right, pos = pos }
  end

  local function signed(sign, operand, pos)
    if operand.t == "literal" and (operand.kind == "int" or operand.kind == "float") then
      if sign == "+" then return operand end
      if operand.value == least then return { t = "literal", kind = "float", value = -(operand.value * 1.0), pos = pos } end
      return { t = "literal", kind = operand.kind, value = -operand.value, pos = pos }
    end
    return { t = "unary", op = sign, operand = operand, pos = pos }
  end

  local SIGNS = { ["-"] = "-", ["-u"] = "-", ["+"] = "+", ["+u"] = "+" }

  local function unary(P, level)
    local kind, pos = P.kind, P.pos
    if kind == "name" then return C.parse_primary(P, level) end
    if P.no_pipe and kind == "|" then unexpected(P) end
    if SIGNS[kind] then
      take(P)
      return signed(SIGNS[kind], unary(P, deeper(P, level, pos)), pos)
    elseif kind == "!" then
      take(P)
      return { t = "unary", op = "!", operand = unary(P, deeper(P, level, pos)), pos = pos }
    end
    return C.parse_primary(P, level)
  end

  local function right_side(P, op, level)
    if op == "??" and JUMPS[P.kind] then
      local block = C.as_block(C.parse_statement(P, level))
      return { t = "block_expr", block = block, pos = block.pos }
    end
    if (op == ".." or op == "..=") and ENDS_A_RANGE[P.kind] then return { t = "literal", kind = "unit", pos = P.pos } end
    return unary(P, level)
  end

  local function operators(P, level, parent, left)
    local pos = left.pos
    while true do
      local op, op_pos = P.kind, P.pos
      if P.no_pipe and op == "|" then return left end
      local own = precedence(P)
      if own < parent or own == parent and op ~= "**" then return left end
      take(P)
      local right = right_side(P, op, level)
      local following = precedence(P)
      if own < following or own == following and op == "**" then
        right = operators(P, deeper(P, level, pos), own, right)
      end
      level, pos = deeper(P, level, pos), op_pos
      left = combined(P, op, op_pos, left, right)
    end
  end

  function C.parse_expression(P, level)
    level = deeper(P, level, P.pos)
    return operators(P, level, 1, unary(P, level))
  end

  -- What may follow an operand

  local function arguments(P, level, pos, name)
    local args = {}
    local kind = P.kind
    if kind == "end" or kind == "error" then
      missing(P, ")", "to close the arguments list of this function call '" .. name .. "'")
    end
    if accept(P, ")") then return args end
    level = deeper(P, level, pos)
    while true do
      if P.kind ~= ")" then args[#args + 1] = C.parse_expression(P, level) end
      if accept(P, ")") then return args end
      if P.kind == "end" then missing(P, ")", "to close the arguments list of this function call '" .. name .. "'") end
      if not accept(P, ",") then missing(P, ",", "to separate the arguments to function call '" .. name .. "'") end
    end
  end

  -- A call f(...), f!(...) or a qualified name a::b; the token in sight is what follows the name.
  local function after_name(P, level, left)
    local kind, pos = P.kind, P.pos
    take(P)
    if kind == "::" then
      local name, name_pos = C.variable_name(P)
      local path = left.path and move(left.path, 1, #left.path, 1, {}) or {}
      if #path >= LONGEST_PATH then fail_taken(P, "Module path is too long", name_pos) end
      path[#path + 1] = left.name
      return {
        t = "variable", name = name, pos = name_pos, path = path, path_pos = left.path_pos or left.pos, stop = P.stop,
      }
    end
    local in_scope = kind == "!"
    if in_scope then
      kind = P.kind
      if left.path then
        if kind == "(" or kind == "()" then fail(P, "Unexpected '!'", pos) end
        fail(P, "'!' cannot be used to call module functions", pos)
      end
      if kind ~= "(" and kind ~= "()" then missing(P, "(", "to start arguments list of function call") end
      P.runs_in_scope = true
      take(P)
    end
    local args = kind == "()" and NONE or arguments(P, level, left.pos, left.name)
    return {
      t = "call", name = left.name, args = args, pos = left.pos, path = left.path, path_pos = left.path_pos,
      in_scope = in_scope, stop = P.stop,
    }
  end

  -- A property or a method call, after the period.
  local function member(P, level, op_pos, optional)
    local kind, name, pos = P.kind, P.value, P.pos
    if kind == "reserved" and RESERVED[name] ~= "m" then fail(P, C.reserved_text(name), pos) end
    if kind ~= "name" and kind ~= "reserved" then fail(P, "Expecting name of a property", pos) end
    take(P)
    local following = P.kind
    if following == "::" then fail(P, "Invalid symbol encountered: '::'", P.pos) end
    if following == "!" then
      take(P)
      if P.kind ~= "(" and P.kind ~= "()" then missing(P, "(", "to start arguments list of function call") end
      fail(P, "method-call style does not support running within the caller's scope", pos)
    end
    if following == "(" or following == "()" then
      take(P)
      local args = following == "()" and NONE or arguments(P, level, pos, name)
      return {
        kind = "method", name = name, args = args, pos = pos, op_pos = op_pos, optional = optional, stop = P.stop,
      }
    end
    if kind == "reserved" then fail(P, C.reserved_text(name), pos) end
    return {
      kind = "property", name = name, args = NONE, pos = pos, op_pos = op_pos, optional = optional, stop = P.stop,
    }
  end

  local function extended(left, step)
    if left.t == "chain" then
      left.steps[#left.steps + 1] = step
      return left
    end
    return { t = "chain", root = left, steps = { step }, pos = step.op_pos }
  end

  -- One index or several, after the first bracket.
  local function indexes(P, level, left, op_pos, optional)
    local first = true
    while true do
      local index = C.parse_expression(P, deeper(P, level, op_pos))
      if first then check_index(P, left, index) end
      C.expect(P, "]", "for a matching [ in this index expression")
      left = extended(left, {
        kind = "index", name = "", args = { index }, pos = start_of(index), op_pos = op_pos, optional = optional,
        stop = P.stop,
      })
      if P.kind ~= "[" and P.kind ~= "?[" then return left end
      op_pos, optional, first = P.pos, P.kind == "?[", false
      take(P)
      level = deeper(P, level, op_pos)
    end
  end

  local CALLS = C.words("( () ! ::")

  -- An operand with what follows it.
  function C.parse_postfix(P, level, left)
    while true do
      local kind, pos = P.kind, P.pos
      if kind == "." or kind == "?." then
        take(P)
        level = deeper(P, level, pos)
        left = extended(left, member(P, level, pos, kind == "?."))
      elseif kind == "[" or kind == "?[" then
        take(P)
        left = indexes(P, deeper(P, level, pos), left, pos, kind == "?[")
      elseif CALLS[kind] and left.t == "variable" then
        left = after_name(P, level, left)
      else
        return left
      end
    end
  end
end
