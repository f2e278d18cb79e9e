-- Writing chains: properties, indexes and methods, read and assigned to.
--
-- `walk` is where a chain has come to: the object's text and type, its root, whether it can be changed, and the way back to
-- the root (container and key of each step, the innermost first).
return function(C, lib)
  local emit, tick, temp, call, use, cut = C.emit, C.tick, C.temp, C.call, C.use, C.cut
  local own, held, operand, label = C.own, C.held, C.operand, C.label
  local quote, number, state_cell = C.quote, C.number, C.state_cell
  local PURE, STRING_LIBRARY, SCALARS = C.PURE, C.STRING_LIBRARY, C.SCALARS
  local type_of, is_shared, is_literal, has_function = C.type_of, C.is_shared, C.is_literal, C.has_function
  local insert, concat = lib.table.insert, lib.table.concat

  local function is_place(root) return root.t == "variable" or root.t == "this" end

  -- Arguments and indexes come before the root, all of them: a list of operands for each step.
  local function chain_arguments(W, steps)
    for at = 1, #steps do C.check_argument_count(steps[at].args, steps[at].pos) end
    local first = steps[1]
    if not steps[2] then
      if not first.args[1] then return { {} } end
      if first.kind == "index" and is_literal(first.args[1]) then return { { C.write_uncounted(W, first.args[1]) } } end
    end
    local last = 0
    for at = 1, #steps do
      local args = steps[at].args
      if args[1] then last = args[#args].to end
    end
    local out = {}
    for at = 1, #steps do
      local step, values = steps[at], {}
      tick(W, step.pos)
      for number_of = 1, #step.args do
        local arg = step.args[number_of]
        local value = C.write_expr(W, arg)
        if step.kind == "method" then value = own(W, value) end
        values[number_of] = held(W, value, arg.to, last)
      end
      out[at] = values
    end
    return out
  end

  local function any_may_change(steps)
    for at = 1, #steps do
      if steps[at].kind == "method" and not PURE[steps[at].name] then return true end
    end
    return false
  end

  local function start(W, expr)
    local root = expr.root
    local writable = root.t == "this" or root.t == "variable" and not root.path and not (root.var and root.var.const)
    local value = C.write_expr(W, root)
    if is_place(root) then return { root = root, obj = value.text, kind = value.type, writable = writable, path = {} } end
    if any_may_change(expr.steps) then value = own(W, value) end
    return { root = root, obj = "(" .. value.text .. ")", kind = value.type, writable = writable, path = {} }
  end

  local function property(W, walk, step, into)
    local obj, name = walk.obj, quote(step.name)
    if step.name == "len" and walk.kind == "arr" then
      emit(W, into .. "=#" .. obj)
      return
    end
    local slow = into .. "=" .. call(W, "prop", obj, name, step.pos)
    if STRING_LIBRARY[step.name] then
      emit(W, slow)
    else
      emit(W, into .. "=" .. obj .. "[" .. name .. "] if " .. into .. "==nil then " .. slow .. " end")
    end
  end

  -- The Lua text of an element, where the kind of index is known.
  local function slot_of(obj, key, index)
    if key.literal then
      if key.literal < 0 or key.literal == lib.math.maxinteger then return nil end
      return obj .. "[" .. number(key.literal + 1) .. "]"
    end
    if key.type == "int" then return obj .. "[" .. key.text .. "+1]" end
    local is_key = index.t == "literal" and index.kind == "str" and not STRING_LIBRARY[index.value]
    return is_key and obj .. "[" .. key.text .. "]" or nil
  end

  local function index(W, walk, step, key, into)
    local slow = into .. "=" .. call(W, "idx", walk.obj, key.text, step.pos, step.op_pos)
    local fast = slot_of(walk.obj, key, step.args[1])
    emit(W, fast and into .. "=" .. fast .. " if " .. into .. "==nil then " .. slow .. " end" or slow)
  end

  local function push(W, walk, step, item, into, wanted)
    local slow = call(W, "push", walk.obj, item.text, step.pos)
    if SCALARS[item.type] then
      local size = temp(W)
      emit(W, size .. "=#" .. walk.obj .. "+1 if " .. size .. ">R.max_array then " .. slow .. " end "
        .. walk.obj .. "[" .. size .. "]=" .. item.text)
    else
      emit(W, slow)
    end
    if wanted then emit(W, into .. "=U") end
  end

  -- What was changed by value goes back into what holds it, up to the root.
  local function write_back(W, walk, changed, step)
    local back = is_place(walk.root) and C.write_back_text(W, walk.root, changed) or ""
    if walk.path[1] then
      local up = call(W, "back", changed, step.op_pos, concat(walk.path, ","))
      local test = "if " .. changed .. "~=nil then "
      emit(W, test .. changed .. "=" .. up .. " " .. test .. back .. " end end")
    elseif back ~= "" then
      emit(W, "if " .. changed .. "~=nil then " .. back .. " end")
    end
  end

  local function method_helper(W, walk)
    local root = walk.root
    if root.t == "variable" and not root.path then
      if root.var then
        if root.var.const then return use(W, "cmethod") end
      elseif not C.in_function(W) then
        return "(" .. state_cell(W, root.name) .. "[2] and " .. use(W, "cmethod") .. " or " .. use(W, "method") .. ")"
      end
    end
    return use(W, "method")
  end

  local function called(W, walk, step, args)
    local texts = { "K", "d", step.pos }
    local helper
    if step.name == "call" or step.name == "curry" then
      helper = use(W, step.name .. "_method")
    else
      helper = method_helper(W, walk)
      texts[4], texts[5] = quote(step.name), C.key_text(step.name, #args)
    end
    texts[#texts + 1] = walk.obj
    for at = 1, #args do texts[#texts + 1] = args[at].text end
    return helper .. "(" .. concat(texts, ",") .. ")"
  end

  local function method(W, walk, step, args, into, wanted)
    local own_method = has_function(W.analysis.methods, step.name, #args)
    if walk.kind == "arr" and not own_method then
      if step.name == "len" and not args[1] then
        emit(W, into .. "=#" .. walk.obj)
        return
      elseif step.name == "push" and #args == 1 and walk.writable then
        push(W, walk, step, args[1], into, wanted)
        return
      end
    end
    if step.name == "is_shared" and not args[1] then
      local shared = walk.root.t == "variable" and not walk.path[1] and is_shared(walk.root)
      emit(W, into .. (shared and "=true" or "=false"))
      return
    elseif step.name == "type_of" and not args[1] then
      emit(W, into .. "=" .. call(W, "type_of", walk.obj))
      return
    end
    local text = called(W, walk, step, args)
    if walk.writable and (own_method or not PURE[step.name]) then
      local changed = temp(W)
      emit(W, into .. "," .. changed .. "=" .. text)
      write_back(W, walk, changed, step)
    else
      emit(W, into .. "=" .. text)
    end
    cut(W)
  end

  local NOWHERE = { t = "literal", kind = "unit", pos = 0 }

  local function take_step(W, walk, step, args, into, wanted)
    if step.kind == "property" then
      tick(W, step.pos)
      property(W, walk, step, into)
      insert(walk.path, 1, quote(step.name))
      insert(walk.path, 1, walk.obj)
    elseif step.kind == "index" then
      tick(W, 0)
      index(W, walk, step, args[1], into)
      insert(walk.path, 1, args[1].text)
      insert(walk.path, 1, walk.obj)
    else
      tick(W, step.pos)
      method(W, walk, step, args, into, wanted)
      walk.path, walk.writable, walk.root = {}, false, NOWHERE
    end
    walk.obj, walk.kind = into, "any"
  end

  -- The label after a chain that may end early; nil where none can.
  local function end_label(W, steps)
    for at = 1, #steps do
      if steps[at].optional then
        emit(W, "do")
        return label(W, "O")
      end
    end
    return nil
  end

  local function close(W, ending)
    if not ending then return end
    cut(W)
    emit(W, "::" .. ending .. ":: end")
    cut(W)
  end

  -- The value of a chain; with `wanted` false only its effects matter.
  C.write_chain = C.into_temporary(function(W, expr, dest, wanted)
    local steps = expr.steps
    local args = chain_arguments(W, steps)
    local walk = start(W, expr)
    local ending = end_label(W, steps)
    local last = #steps
    for at = 1, last do
      local step = steps[at]
      if step.optional then
        emit(W, "if " .. walk.obj .. "==U then " .. dest .. "=U goto " .. ending .. " end")
        cut(W)
      end
      take_step(W, walk, step, args[at], at == last and dest or temp(W), wanted ~= false or at < last)
    end
    close(W, ending)
    return type_of(expr, W.analysis), steps[last].kind == "method"
  end)

  -- Assignment

  local function check_constant(W, root)
    if root.t ~= "variable" or root.path then return end
    local raises = call(W, "constant", quote(root.name), C.start_of(root))
    if root.var then
      if root.var.const then emit(W, raises) end
    elseif not C.in_function(W) then
      emit(W, "if " .. state_cell(W, root.name) .. "[2] then " .. raises .. " end")
    end
  end

  local function store_with_operator(W, slot, slow, changed, value, stmt)
    local op = stmt.op
    if not slot or op ~= "+" and op ~= "-" and op ~= "*" then
      emit(W, changed .. "=" .. slow)
      return
    end
    local old, new = temp(W), temp(W)
    emit(W, old .. "=" .. slot .. " if " .. old .. "==nil then " .. changed .. "=" .. slow .. " else " .. changed .. "=nil")
    C.write_arithmetic(W, op, new, operand(old, "any", false), value, stmt.pos, true)
    emit(W, slot .. "=" .. new .. " end")
  end

  local function store(W, walk, step, args, value, stmt)
    tick(W, step.pos)
    local changed = temp(W)
    local obj = walk.obj
    local key, slot, kind
    if step.kind == "property" then
      key, kind = quote(step.name), "true"
      slot = not STRING_LIBRARY[step.name] and obj .. "[" .. key .. "]" or nil
    else
      key, kind = args[1].text, "false"
      slot = slot_of(obj, args[1], step.args[1])
    end
    local places = step.pos .. "," .. step.op_pos .. "," .. stmt.pos
    if stmt.op ~= "" then
      local slow = call(W, "op_store", obj, key, quote(stmt.op), value.text, kind, places)
      store_with_operator(W, slot, slow, changed, value, stmt)
    else
      local slow = changed .. "=" .. call(W, "store", obj, key, value.text, kind, places)
      if slot and SCALARS[value.type] then
        emit(W, "if " .. slot .. "~=nil then " .. slot .. "=" .. value.text .. " " .. changed .. "=nil else " .. slow .. " end")
      else
        emit(W, slow)
      end
    end
    write_back(W, walk, changed, step)
  end

  function C.write_chain_assignment(W, stmt)
    local target = stmt.target
    local fn, steps = W.fn, target.steps
    local mark, last = fn.top, #steps
    -- The indexes are evaluated after the value, between these times.
    local value = held(W, own(W, C.write_expr(W, stmt.value)), target.root.to, target.to)
    local args = chain_arguments(W, steps)
    local walk = start(W, target)
    check_constant(W, target.root)
    local ending = end_label(W, steps)
    for at = 1, last do
      if steps[at].optional then
        emit(W, "if " .. walk.obj .. "==U then goto " .. ending .. " end")
        cut(W)
      end
      if at < last then take_step(W, walk, steps[at], args[at], temp(W), true) end
    end
    store(W, walk, steps[last], args[last], value, stmt)
    close(W, ending)
    fn.top = mark
  end
end
