-- Constant folding of expressions. `O` is the optimizer's state: the constants in scope, the functions, what was expanded.
return function(C, lib)
  local combine, is_pure, all = C.combine, C.is_pure, C.all
  local tostring, concat = lib.tostring, lib.table.concat
  local utf8_len, offset, sub = lib.utf8.len, lib.utf8.offset, lib.string.sub
  local DEEPEST = 3 -- functions in the scope of each other
  local MOST_EXPANDED = 20000 -- nodes that calls in the caller's scope may add to a script
  local TYPES = { bool = "bool", int = "i64", float = "f64", str = "string", char = "char", unit = "()" }
  local fold

  local function literal(kind, value, pos) return { t = "literal", kind = kind, value = value, pos = pos } end

  local function fold_all(O, items)
    for at = 1, #items do items[at] = fold(O, items[at]) end
  end

  local function variable(O, expr)
    local constant = not expr.path and C.value_of_name(O.constants, expr.name)
    return constant and literal(constant.kind, constant.value, expr.pos) or expr
  end

  local function binary(O, expr)
    local left, right = fold(O, expr.left), fold(O, expr.right)
    expr.left, expr.right = left, right
    if left.t == "literal" and right.t == "literal" then
      local kind, value = combine(expr.op, left, right)
      if kind then return literal(kind, value, expr.pos) end
    end
    return expr
  end

  local function unary(O, expr)
    local operand = fold(O, expr.operand)
    expr.operand = operand
    if expr.op == "!" and operand.t == "literal" and operand.kind == "bool" then
      return literal("bool", not operand.value, operand.pos)
    end
    return expr
  end

  -- Operands that decide nothing go; one that decides ends the list.
  local function logic(O, expr)
    local items, start, stops = {}, expr.items[1].pos, expr.op == "||"
    for at = 1, #expr.items do
      local item = fold(O, expr.items[at])
      local keep, ends = true, false
      if item.t == "literal" and expr.op == "??" then
        keep, ends = item.kind ~= "unit", item.kind ~= "unit"
      elseif item.t == "literal" and item.kind == "bool" then
        keep, ends = item.value == stops, item.value == stops
        if ends and all(items, is_pure) then return item end
      end
      if keep then items[#items + 1] = item end
      if ends then break end
    end
    if not items[1] then
      if expr.op == "??" then return literal("unit", nil, start) end
      return literal("bool", not stops, start)
    end
    if not items[2] then return items[1] end
    expr.items = items
    return expr
  end

  -- A literal as interpolation shows it, where that is beyond doubt.
  local function text_of(expr)
    if expr.t ~= "literal" or expr.kind == "float" then return nil end
    if expr.kind == "unit" then return "" end
    return tostring(expr.value)
  end

  -- Neighbours that are constant become one text.
  local function interpolated(O, expr)
    local items, pieces, place = {}, {}, nil
    local function flush()
      if not pieces[1] then return end
      items[#items + 1] = literal("str", concat(pieces), place)
      pieces = {}
    end
    for at = 1, #expr.items do
      local item = fold(O, expr.items[at])
      local text = text_of(item)
      if not text then
        flush()
        items[#items + 1] = item
      elseif text ~= "" then
        if not pieces[1] then place = item.pos end
        pieces[#pieces + 1] = text
      end
    end
    flush()
    local only = items[1]
    if not only then return literal("str", "", expr.pos) end
    if not items[2] and only.t == "literal" and only.kind == "str" then return literal("str", only.value, expr.pos) end
    expr.items = items
    return expr
  end

  -- f!(...): the body of the function as a closure, which sees the variables around it.
  local function in_scope(O, expr)
    local fn = O.functions[expr.name .. "\0" .. #expr.args]
    if not fn or O.expanding >= DEEPEST then return expr end
    local function count()
      O.script.expanded = O.script.expanded + 1
      if O.script.expanded > MOST_EXPANDED then
        local hint = "call the function as " .. expr.name .. "(...)"
        C.fail_at(nil, "Too many calls that run in the caller's scope", expr.pos, hint)
      end
    end
    local params = {}
    for at = 1, #fn.params do params[at] = fn.params[at] end
    local closure = { t = "closure", params = params, body = C.copied(fn.body, count), pos = expr.pos }
    O.expanding = O.expanding + 1
    C.optimize_closure(O, closure)
    O.expanding = O.expanding - 1
    local step = { kind = "method", name = "call", args = expr.args, pos = expr.pos, op_pos = expr.pos, optional = false }
    return { t = "chain", root = closure, steps = { step }, pos = expr.pos }
  end

  local function call(O, expr)
    fold_all(O, expr.args)
    if expr.in_scope then return in_scope(O, expr) end
    local first = not expr.args[2] and expr.args[1]
    if not first then return expr end
    if first.t == "literal" and not expr.path then
      if expr.name == "type_of" then return literal("str", TYPES[first.kind], expr.pos) end
      if expr.name == "is_shared" then return literal("bool", false, expr.pos) end
    end
    if expr.name == "type_of" and (first.t == "array" or first.t == "map") and is_pure(first) then
      return literal("str", first.t, expr.pos)
    end
    return expr
  end

  local function entry_of(map, name)
    for at = 1, #map.names do
      if map.names[at] == name then return map.items[at] end
    end
    return literal("unit", nil, map.pos)
  end

  local function character_of(text, at, pos)
    local size = utf8_len(text)
    if at < 0 then at = at + size end
    if at < 0 or at >= size then return nil end
    local start = offset(text, at + 1)
    return literal("char", sub(text, start, offset(text, at + 2) - 1), pos)
  end

  -- What the one step of a chain gives, where its root is made of constants.
  local function first_step(root, step)
    if step.optional and root.t == "literal" and root.kind == "unit" then return root end
    local index = step.kind == "index" and step.args[1]
    local name = step.kind == "property" and step.name or nil
    local number
    if index and index.t == "literal" then
      if index.kind == "str" then name = index.value end
      if index.kind == "int" then number = index.value end
    end
    if name and root.t == "map" and all(root.items, is_pure) then return entry_of(root, name) end
    if not number then return nil end
    if root.t == "array" then
      local size = #root.items
      if number < -size or number >= size or not all(root.items, is_pure) then return nil end
      return root.items[number >= 0 and number + 1 or size + number + 1]
    end
    if root.t == "literal" and root.kind == "str" then return character_of(root.value, number, root.pos) end
    return nil
  end

  local function chain(O, expr)
    if expr.root.t ~= "variable" then expr.root = fold(O, expr.root) end
    for at = 1, #expr.steps do fold_all(O, expr.steps[at].args) end
    if expr.steps[2] then return expr end
    return first_step(expr.root, expr.steps[1]) or expr
  end

  local function block_expr(O, expr)
    C.optimize_block(O, expr.block, true)
    local body = expr.block.body
    if not body[1] then return literal("unit", nil, expr.pos) end
    if not body[2] and body[1].t == "expr" then return body[1].expr end
    return expr
  end

  local function items_of(O, expr)
    fold_all(O, expr.items)
    return expr
  end

  local FOLD = {
    variable = variable, binary = binary, unary = unary, logic = logic, interpolated = interpolated,
    array = items_of, map = items_of, call = call, chain = chain, block_expr = block_expr,
    range = function(O, expr)
      expr.left, expr.right = fold(O, expr.left), fold(O, expr.right)
      return expr
    end,
    closure = function(O, expr)
      C.optimize_closure(O, expr)
      return expr
    end,
  }

  -- The expression, or a simpler one of the same value.
  function fold(O, expr)
    local handler = FOLD[expr.t]
    return handler and handler(O, expr) or expr
  end
  C.fold = fold
end
