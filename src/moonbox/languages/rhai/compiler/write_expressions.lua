-- Writing expressions: each becomes an operand, with the statements it needs before it.
return function(C, lib)
  local emit, tick, temp, call, use = C.emit, C.tick, C.temp, C.call, C.use
  local own, held, read, literal, operand = C.own, C.held, C.read, C.literal, C.operand
  local into_temporary = C.into_temporary
  local quote, state_cell = C.quote, C.state_cell
  local SCALARS, type_of, is_constant = C.SCALARS, C.type_of, C.is_constant
  local concat = lib.table.concat
  local PIECES = 30 -- arguments of one helper call
  local AT_ONCE = 12 -- items of a literal that are held in temporaries
  local FEW = 32 -- items of a literal that no limit is below
  local WRITERS

  -- An expression whose own operation is counted elsewhere.
  local function uncounted(W, expr) return WRITERS[expr.t](W, expr) end
  C.write_uncounted = uncounted

  local function write_expr(W, expr)
    tick(W, expr.pos)
    return WRITERS[expr.t](W, expr)
  end
  C.write_expr = write_expr

  local function variable(W, expr)
    local var = expr.var
    if var and not var.cell then return { text = read(W, var), type = var.type, owned = false, var = var } end
    local result, pos, name = temp(W), expr.pos, quote(expr.name)
    if expr.path then
      emit(W, result .. "=" .. call(W, "qualified", quote(concat(expr.path, "::")), name, expr.path_pos))
    elseif var then
      emit(W, result .. "=" .. read(W, var))
      return operand(result, var.type, false)
    elseif W.analysis.names[expr.name] then
      emit(W, result .. "=" .. call(W, "fn_of", name, pos))
    elseif C.in_function(W) then
      emit(W, result .. "=" .. call(W, "novar", name, pos, W.analysis.top_names[expr.name] and "true" or "false"))
    else
      emit(W, result .. "=" .. state_cell(W, expr.name) .. "[1] if " .. result .. "==nil then " .. result .. "="
        .. call(W, "novar", name, pos) .. " end")
    end
    return operand(result, "any", false)
  end

  -- The ends of a range as operands.
  function C.write_ends(W, expr)
    if expr.left.t == "literal" and expr.right.t == "literal" then return literal(W, expr.left), literal(W, expr.right) end
    return C.write_pair(W, expr.left, expr.right)
  end

  local range = into_temporary(function(W, expr, dest)
    local left, right = C.write_ends(W, expr)
    local inclusive = expr.inclusive and "true" or "false"
    emit(W, dest .. "=" .. call(W, "range", left.text, right.text, inclusive, expr.pos))
    return "range"
  end)

  -- A literal made of literals, as one Lua expression.
  local function constant(W, expr)
    if expr.t == "literal" then return literal(W, expr).text end
    local parts = {}
    for at = 1, #expr.items do parts[at] = constant(W, expr.items[at]) end
    if expr.t == "array" then return call(W, "array", "{" .. concat(parts, ",") .. "}") end
    if expr.t == "interpolated" then return call(W, "text", "0", concat(parts, ",")) end
    for at = 1, #parts do parts[at] = "[" .. quote(expr.names[at]) .. "]=" .. parts[at] end
    return call(W, "map", "{[true]=" .. #parts .. (parts[1] and "," or "") .. concat(parts, ",") .. "}")
  end

  -- The texts of items, each safe from what those after it write.
  local function items_of(W, items)
    local texts, last = {}, items[#items].to
    for at = 1, #items do
      local item = items[at]
      texts[at] = held(W, own(W, write_expr(W, item)), item.to, last).text
    end
    return texts
  end

  -- Items that are arrays or maps themselves count with all they hold.
  local function check_size(W, dest, expr)
    local items, names = expr.items, expr.names
    local nested = #items > FEW
    for at = 1, nested and 0 or #items do nested = nested or not SCALARS[type_of(items[at], W.analysis)] end
    if not nested then return end
    local places = {}
    for at = 1, #items do places[at] = (names and quote(names[at]) .. "," or "") .. items[at].pos end
    emit(W, "if " .. use(W, "limited") .. " then "
      .. call(W, "check_literal", dest, "function() return {" .. concat(places, ",") .. "} end") .. " end")
  end

  -- An array or a map; of many items, one after the other is stored.
  local collection = into_temporary(function(W, expr, dest)
    local mark, items, names = W.fn.top, expr.items, expr.names
    local helper, kind = names and "map" or "array", names and "map" or "arr"
    if is_constant(expr) then
      emit(W, dest .. "=" .. constant(W, expr))
      return kind
    end
    local head = names and "{[true]=" .. #items .. "," or "{"
    if #items <= AT_ONCE then
      local texts = items_of(W, items)
      for at = 1, names and #texts or 0 do texts[at] = "[" .. quote(names[at]) .. "]=" .. texts[at] end
      emit(W, dest .. "=" .. call(W, helper, head .. concat(texts, ",") .. "}"))
    else
      emit(W, dest .. "=" .. call(W, helper, head .. "}"))
      for at = 1, #items do
        local key = names and quote(names[at]) or at
        emit(W, dest .. "[" .. key .. "]=" .. own(W, write_expr(W, items[at])).text)
        W.fn.top = mark
      end
    end
    check_size(W, dest, expr)
    return kind
  end)

  local interpolated = into_temporary(function(W, expr, dest)
    local mark, items, pieces = W.fn.top, expr.items, {}
    local last = items[#items]
    for at = 1, #items do
      local item = items[at]
      pieces[#pieces + 1] = held(W, write_expr(W, item), item.to, last.to).text
      if #pieces == PIECES then
        emit(W, dest .. "=" .. call(W, "text", item.pos, concat(pieces, ",")))
        W.fn.top = mark
        pieces = { dest }
      end
    end
    emit(W, dest .. "=" .. call(W, "text", last.pos, concat(pieces, ",")))
    return "str"
  end)

  -- One for each kind of expression.
  WRITERS = {
    literal = literal, variable = variable, range = range, array = collection, map = collection, interpolated = interpolated,
    binary = C.write_binary, unary = C.write_unary, logic = C.write_logic,
    call = C.write_call, chain = C.write_chain, closure = C.write_closure,
    this = function(W, expr)
      emit(W, "if this==nil then " .. call(W, "unbound", expr.pos) .. " end")
      return operand("this", "any", false)
    end,
    block_expr = into_temporary(function(W, expr, dest) C.write_block(W, expr.block, dest) end),
  }
end
