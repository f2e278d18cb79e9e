-- Writing calls, closures and functions.
return function(C, lib)
  local emit, tick, temp, call, use, cut = C.emit, C.tick, C.temp, C.call, C.use, C.cut
  local own, held, read, operand, into_temporary = C.own, C.held, C.read, C.operand, C.into_temporary
  local quote, find_place, state_cell = C.quote, C.find_place, C.state_cell
  local PURE, is_shared, has_function, MAX_ARGUMENTS = C.PURE, C.is_shared, C.has_function, C.MAX_ARGUMENTS
  local format, concat, digits = lib.string.format, lib.table.concat, C.digits
  local MAX_CALL_LEVELS, FIRST_LEVEL = 64, 2 -- the script itself runs at that index of the context

  local function check_count(args, pos)
    if #args > MAX_ARGUMENTS then
      C.fail_at(nil, format("Too many arguments: a function takes at most %d", MAX_ARGUMENTS), pos)
    end
  end
  C.check_argument_count = check_count

  -- Adds the texts of arguments from number `first` on, which the callee may keep.
  local function arguments(W, args, first, into)
    local last = args[#args]
    for at = first, #args do
      local arg = args[at]
      into[#into + 1] = held(W, own(W, C.write_expr(W, arg)), arg.to, last.to).text
    end
    return into
  end

  -- The name of a function among all of them: with its number of parameters.
  local function key(name, count) return quote(name .. "_" .. digits(count)) end
  C.key_text = key

  -- Whether the code being written belongs to a function, not to the script itself.
  local function in_function(W)
    local unit = W.unit
    while unit.is_closure and unit.parent do unit = unit.parent end
    return unit ~= W.analysis.main
  end
  C.in_function = in_function

  -- The statement that stores a value in a variable or in `this`.
  function C.write_back_text(W, target, text)
    if target.t == "this" then return "this=" .. text end
    if target.var then return read(W, target.var) .. "=" .. text end
    if not W.unit.parent and W.unit ~= W.analysis.main then return "" end
    return state_cell(W, target.name) .. "[1]=" .. text
  end

  local function line_and_column(pos) return pos >> 16, pos & 0xFFFF end

  -- A function of this script.
  local own_function = into_temporary(function(W, expr, dest)
    local args, texts = expr.args, { "K", "d+1", "nil" }
    for at = 1, #args do
      local arg = args[at]
      local value = C.write_expr(W, arg)
      if arg.t == "this" or value.var and value.var.captured then
        value = own(W, value) -- others can change it while the function runs
      end
      texts[#texts + 1] = held(W, value, arg.to, args[#args].to).text
    end
    tick(W, expr.pos)
    local site = format("%s@%d:%d", expr.name, line_and_column(expr.pos))
    emit(W, "K[d]=" .. quote(site) .. " " .. dest .. "=F[" .. key(expr.name, #args) .. "](" .. concat(texts, ",") .. ") K[d]=0")
    cut(W)
    return "any", not has_function(W.lenders, expr.name, #args)
  end)

  -- A function of the runtime, a tool, or one that an earlier run defined.
  local any_function = into_temporary(function(W, expr, dest)
    local args = expr.args
    local first = args[1]
    local pure, by_reference = PURE[expr.name], false
    if first then
      by_reference = first.t == "this" or first.t == "variable" and not first.path
        and not is_shared(first) and not (first.var and first.var.const)
    end
    local texts = { quote(expr.name), key(expr.name, #args) }
    if by_reference then
      local rest = arguments(W, args, 2, {}) -- the reference looks the variable up last
      texts[3] = C.write_expr(W, first).text
      for at = 1, #rest do texts[at + 3] = rest[at] end
    elseif pure and first then
      texts[3] = held(W, C.write_expr(W, first), first.to, args[#args].to).text
      arguments(W, args, 2, texts)
    else
      arguments(W, args, 1, texts)
    end
    tick(W, expr.pos)
    -- A variable that has the name of the function that is called is a closure, most likely.
    local helper = W.placed[expr.name] and "callv" or "callf"
    local called = use(W, helper) .. "(K,d," .. expr.pos .. "," .. concat(texts, ",") .. ")"
    if by_reference and not pure then
      local changed = temp(W)
      emit(W, dest .. "," .. changed .. "=" .. called)
      emit(W, "if " .. changed .. "~=nil then " .. C.write_back_text(W, first, changed) .. " end")
    else
      emit(W, dest .. "=" .. called)
    end
    cut(W)
  end)

  local qualified = into_temporary(function(W, expr, dest)
    local texts = { "K", "d", expr.pos, expr.path_pos, quote(concat(expr.path, "::")), quote(expr.name) }
    arguments(W, expr.args, 1, texts)
    tick(W, expr.pos)
    emit(W, dest .. "=" .. use(W, "callq") .. "(" .. concat(texts, ",") .. ")")
    cut(W)
  end)

  -- Functions that the language itself defines; nothing where the number of arguments is another one.

  local type_of_call = into_temporary(function(W, expr, dest)
    emit(W, dest .. "=" .. call(W, "type_of", C.write_expr(W, expr.args[1]).text))
    return "str"
  end)

  local function is_shared_call(W, expr)
    local arg = expr.args[1]
    local shared = arg.t == "variable" and not arg.path and is_shared(arg)
    C.write_expr(W, arg)
    return operand(shared and "true" or "false", "bool")
  end

  -- The runtime gets the names of this unit, each with a number, and up to which they are defined here.
  local is_def_var_call = into_temporary(function(W, expr, dest)
    local name = C.write_expr(W, expr.args[1]).text
    local known, table_text = W.unit.known, "{}"
    if known then
      if not known.at then
        W.known[#W.known + 1] = known
        known.at = #W.known
      end
      table_text = "D[" .. known.at .. "]"
    end
    local at_top = W.unit == W.analysis.main and "true" or "false"
    local pos = expr.args[1].pos
    emit(W, dest .. "=" .. call(W, "is_def_var", name, table_text, known and known.count or 0, at_top, pos))
    return "bool"
  end)

  local COUNTED = { print = true, debug = true, call = true }

  local by_runtime = into_temporary(function(W, expr, dest)
    local texts = { "K", "d", expr.pos, expr.args[1] and expr.args[1].pos or 0 }
    arguments(W, expr.args, 1, texts)
    if COUNTED[expr.name] then tick(W, expr.pos) end
    emit(W, dest .. "=" .. use(W, "do_" .. expr.name) .. "(" .. concat(texts, ",") .. ")")
    cut(W)
  end)

  -- How each is written, and with how many arguments.
  local SPECIAL = {
    type_of = { type_of_call, 1, 1 }, is_shared = { is_shared_call, 1, 1 }, is_def_var = { is_def_var_call, 1, 1 },
    is_def_fn = { by_runtime, 2, 3 }, Fn = { by_runtime, 1, 1 }, call = { by_runtime, 1, 99 }, curry = { by_runtime, 2, 99 },
    eval = { by_runtime, 1, 1 }, print = { by_runtime, 0, 1 }, debug = { by_runtime, 0, 1 },
  }

  function C.write_call(W, expr)
    local count = #expr.args
    check_count(expr.args, expr.pos)
    if expr.path then return qualified(W, expr) end
    if expr.in_scope then
      local dest = temp(W)
      emit(W, dest .. "=" .. call(W, "in_scope", quote(expr.name), expr.pos))
      return operand(dest)
    end
    local special = SPECIAL[expr.name]
    if special and count >= special[2] and count <= special[3] then return special[1](W, expr) end
    if has_function(W.analysis.functions, expr.name, count) then return own_function(W, expr) end
    return any_function(W, expr)
  end

  -- Functions

  -- Writes a Lua function, with what comes before it and after it.
  local function write_function(W, unit, body, before, after)
    local fn, outer_unit, loops, catching, variables = W.fn, W.unit, W.loops, W.catching, W.variables
    local inner = C.new_function(W)
    W.fn, W.unit, W.loops, W.catching, W.variables = inner, unit, {}, nil, #unit.params
    local names = { "K", "d", "this" }
    for at = 1, #unit.params do
      find_place(W, unit.params[at], true)
      names[at + 3] = unit.params[at].lua
    end
    for at = 1, #unit.params do
      local param = unit.params[at]
      if param.changed or param.captured then emit(W, param.lua .. "=" .. call(W, "copy", param.lua)) end
    end
    C.write_tail(W, body.t == "block" and body.body or { body })
    W.fn, W.unit, W.loops, W.catching, W.variables = fn, outer_unit, loops, catching, variables
    local deepest = MAX_CALL_LEVELS + FIRST_LEVEL
    emit(W, before .. "function(" .. concat(names, ",") .. ")if d>" .. deepest .. " then deep(K,d)end")
    C.emit_all(W, C.declarations(W, inner))
    C.emit_all(W, inner.lines)
    emit(W, "end" .. after)
  end

  -- A name from outside that is no variable of the script's text: an earlier run may have left it.
  local function check_outside(W, name, pos)
    if in_function(W) then
      emit(W, "do " .. call(W, "novar", quote(name), pos) .. " end")
    else
      emit(W, call(W, "need", state_cell(W, name), quote(name), pos))
    end
  end

  function C.write_closure(W, expr)
    local unit = expr.unit
    if unit.free[1] then
      for _ = 1, 3 do tick(W, expr.pos) end
      for at = 1, #unit.free do tick(W, unit.free_pos[unit.free[at]]) end
    end
    local known = {}
    for var in lib.next, unit.captured do known[var.name] = true end
    for at = 1, #unit.free do
      local name = unit.free[at]
      if not known[name] then check_outside(W, name, unit.free_pos[name]) end
    end
    local dest = temp(W)
    local name = format("anon$%08x%08x", line_and_column(expr.pos))
    local before = dest .. "=" .. use(W, "fnptr") .. "(" .. quote(name) .. "," .. #unit.params .. ","
    write_function(W, unit, expr.body, before, ")")
    return operand(dest, "fn")
  end

  -- Writes the definition of a function of the script.
  function C.write_definition(W, fn)
    local unit = fn.unit
    local this_type = fn.this_type and quote(fn.this_type) or "nil"
    local before = use(W, "def") .. "(S," .. quote(fn.name) .. "," .. #unit.params .. "," .. this_type .. ","
    write_function(W, unit, fn.body, before, ")")
  end
end
