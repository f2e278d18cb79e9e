-- Writing statements, and the chunk of a whole script.
return function(C, lib)
  local emit, emit_all, tick, temp, call, cut, finish_ticks = C.emit, C.emit_all, C.tick, C.temp, C.call, C.cut, C.finish_ticks
  local own, read, operand, define, returned = C.own, C.read, C.operand, C.define, C.returned
  local quote, state_cell, pos_of = C.quote, C.state_cell, C.pos_of
  local concat, byte, next = lib.table.concat, lib.string.byte, lib.next
  local COUNTS_ONCE = { call = true, binary = true, unary = true, range = true }
  local write_statement, write_tail

  local function write_statements(W, body, dest)
    local size = #body
    for at = 1, size - 1 do write_statement(W, body[at], nil) end
    if size > 0 then
      write_statement(W, body[size], dest)
    elseif dest then
      emit(W, dest .. "=U")
    end
  end
  C.write_statements = write_statements

  -- A block with a scope of its own; its value goes to `dest`.
  local function write_block(W, block, dest)
    local locals, variables = W.fn.locals, W.variables
    emit(W, "do")
    write_statements(W, block.body, dest)
    emit(W, "end")
    W.fn.locals, W.variables = locals, variables
  end
  C.write_block = write_block

  -- An expression as a statement: a call or an operator then counts only once.
  local function as_statement(W, expr, wanted)
    if expr.t == "chain" then
      tick(W, expr.pos)
      return C.write_chain(W, expr, wanted)
    end
    return COUNTS_ONCE[expr.t] and C.write_uncounted(W, expr) or C.write_expr(W, expr)
  end

  local function write_let(W, stmt)
    if stmt.fresh then C.count_variables(W, 1, stmt.pos) end
    local var, value = stmt.var, "U"
    if stmt.value then
      value = own(W, C.write_expr(W, stmt.value)).text
    else
      tick(W, 0)
    end
    define(W, var, value)
    if var.top and stmt.const then emit(W, call(W, "set_constant", quote(var.name), read(W, var))) end
  end

  -- Assignment

  local function assigned_value(W, stmt)
    local value = C.write_expr(W, stmt.value)
    return stmt.op == "" and own(W, value) or value
  end

  -- Writes `text = text op value` or `text = value`; `old` reads what is there.
  local function store(W, stmt, text, old, value)
    if stmt.op == "" then
      emit(W, text .. "=" .. value.text)
      return
    end
    local dest = temp(W)
    if byte(text, -1) == 93 then -- a field: read once
      old.text = temp(W)
      emit(W, old.text .. "=" .. text)
    end
    C.write_arithmetic(W, stmt.op, dest, old, value, stmt.pos, true)
    emit(W, text .. "=" .. dest)
  end

  local function assign_this(W, stmt)
    emit(W, "if this==nil then " .. call(W, "unbound", stmt.target.pos) .. " end")
    local value = assigned_value(W, stmt)
    tick(W, stmt.target.pos)
    store(W, stmt, "this", operand("this", "any", false), value)
  end

  -- What is no variable of this text: one that an earlier run left, or none at all.
  local function assign_elsewhere(W, stmt, target)
    local name, pos = quote(target.name), target.pos
    if W.analysis.names[target.name] then
      own(W, C.write_expr(W, stmt.value))
      emit(W, call(W, "constant", name, pos))
    elseif C.in_function(W) then
      own(W, C.write_expr(W, stmt.value))
      tick(W, target.pos)
      emit(W, call(W, "novar", name, pos, W.analysis.top_names[target.name] and "true" or "false"))
    else
      local value = assigned_value(W, stmt)
      tick(W, target.pos)
      local cell = state_cell(W, target.name)
      emit(W, call(W, "assignable", cell, name, pos))
      store(W, stmt, cell .. "[1]", operand("", "any", false), value)
    end
  end

  local function write_assign(W, stmt)
    local target = stmt.target
    if target.t == "chain" then return C.write_chain_assignment(W, stmt) end
    if target.t == "this" then return assign_this(W, stmt) end
    local var, pos = target.var, target.pos
    if target.path then
      own(W, C.write_expr(W, stmt.value))
      emit(W, call(W, "constant", quote(concat(target.path, "::") .. "::" .. target.name), pos))
    elseif not var then
      assign_elsewhere(W, stmt, target)
    elseif var.const then
      own(W, C.write_expr(W, stmt.value))
      tick(W, target.pos)
      emit(W, call(W, "constant", quote(var.name), pos))
    else
      local text = read(W, var)
      local value = assigned_value(W, stmt)
      tick(W, target.pos)
      store(W, stmt, text, operand(text, var.type, false), value)
    end
  end

  local SIMPLE = {
    let = write_let, assign = write_assign, ["break"] = C.write_jump,
    ["return"] = function(W, stmt)
      local value = stmt.value and C.write_expr(W, stmt.value).text or "U" -- the reader copies it if it keeps it
      emit(W, returned(W, value))
    end,
    throw = function(W, stmt)
      local value = stmt.value and own(W, C.write_expr(W, stmt.value)).text or "U"
      emit(W, call(W, "throw", value, stmt.pos, W.catching or "nil"))
    end,
    import = function(W, stmt)
      local path = C.write_expr(W, stmt.path).text
      emit(W, call(W, "import_", path, stmt.path.pos))
    end,
    export = function(W, stmt) emit(W, call(W, "export_", stmt.pos)) end,
    noop = function() end,
  }

  -- Statements that give their value to `dest` themselves.
  local VALUED = {
    expr = function(W, stmt, dest)
      local value = as_statement(W, stmt.expr, dest ~= nil)
      if dest then emit(W, dest .. "=" .. own(W, value).text) end
    end,
    block = write_block, ["if"] = C.write_if, switch = C.write_switch,
    ["while"] = C.write_loop, ["do"] = C.write_loop, ["for"] = C.write_loop, try = C.write_try,
  }
  local LEAVES = { ["return"] = true, throw = true, ["break"] = true }

  function write_statement(W, stmt, dest)
    local fn = W.fn
    local mark = fn.top
    tick(W, pos_of(stmt))
    local valued = VALUED[stmt.t]
    if valued then
      valued(W, stmt, dest)
    else
      SIMPLE[stmt.t](W, stmt)
      if dest and not LEAVES[stmt.t] then emit(W, dest .. "=U") end
    end
    fn.top = mark
  end

  local function tail_branch(W, body)
    local locals, variables = W.fn.locals, W.variables
    cut(W)
    write_tail(W, body)
    finish_ticks(W)
    W.fn.locals, W.variables = locals, variables
  end

  -- Statements that end a function: the value of the last is returned.
  function write_tail(W, body)
    local size, fn = #body, W.fn
    for at = 1, size - 1 do write_statement(W, body[at], nil) end
    local last = body[size]
    local mark = fn.top
    if not last then
      emit(W, returned(W, "U"))
    elseif last.t == "expr" then
      tick(W, pos_of(last))
      emit(W, returned(W, as_statement(W, last.expr).text))
      fn.top = mark
    elseif last.t == "if" then
      tick(W, last.pos)
      emit(W, "if " .. C.write_condition(W, last.condition) .. " then")
      fn.top = mark
      tail_branch(W, last.then_.body)
      emit(W, "else")
      tail_branch(W, last.other and last.other.body or {})
      emit(W, "end")
    elseif last.t == "return" or last.t == "throw" then
      write_statement(W, last, nil)
    else
      local dest = temp(W)
      write_statement(W, last, dest)
      emit(W, returned(W, dest))
    end
  end
  C.write_tail = write_tail

  -- The chunk

  -- The statement that keeps a variable for the next run.
  local function save_statement(var)
    local name = quote(var.name)
    if var.cell then return var.lua .. "[2]=" .. (var.const and "true" or "nil") .. " V[" .. name .. "]=" .. var.lua end
    return "V[" .. name .. "]={" .. var.lua .. (var.const and ",true" or "") .. "}"
  end

  local function write_main(W, script)
    local chunk, fn = W.fn, C.new_function(W)
    W.fn = fn
    local names, saved = {}, { "K.save=function(V)" }
    local tops = {}
    for at = 1, #W.analysis.vars do
      local var = W.analysis.vars[at]
      if var.top then
        var.cell = var.captured
        if C.find_place(W, var) then names[#names + 1] = var.lua end
        tops[#tops + 1] = var
      end
    end
    write_tail(W, script.body)
    W.fn = chunk
    emit(W, "return (function(K,d)")
    emit_all(W, C.declarations(W, fn))
    if names[1] then emit(W, "local " .. concat(names, ",")) end
    for at = 1, #W.states < C.MAX_STATES and #W.states or C.MAX_STATES do
      emit(W, "local S" .. at .. "=" .. call(W, "cellof", quote(W.states[at])))
    end
    for at = 1, #tops do saved[at + 1] = "if " .. tops[at].lua .. "~=nil then " .. save_statement(tops[at]) .. " end" end
    saved[#saved + 1] = "end"
    if tops[1] then emit_all(W, saved) end
    emit_all(W, fn.lines)
    emit(W, "end)(K,2)")
  end

  -- What `is_def_var` may look up, unit by unit.
  local function definitions_known(W)
    local units = {}
    for at = 1, #W.known do
      local entries = {}
      for name, number in next, W.known[at].numbers do entries[#entries + 1] = "[" .. quote(name) .. "]=" .. number end
      units[at] = "{" .. concat(entries, ",") .. "}"
    end
    return units[1] and "local D={" .. concat(units, ",") .. "}" or ""
  end

  -- The Lua text of a script, the positions of its operations, and its variables, each with its Lua name. The chunk is called with the runtime, the state and the
  -- context of a run, and these positions.
  function C.write_chunk(script, limits)
    local A = C.analyse(script)
    C.infer(A)
    local W = C.new_writer(A, C.lenders(script), limits)
    for at = 1, #script.functions do C.write_definition(W, script.functions[at]) end
    write_main(W, script)
    local helpers = {}
    for at = 1, #W.helpers do helpers[at] = "R." .. W.helpers[at] end
    local head = {
      "local R,S,K,P=...",
      "local F,U,E=S.functions,R.U,R.E",
      "local " .. concat(W.helpers, ",") .. "=" .. concat(helpers, ","),
      W.chars[1] and "local C={" .. concat(W.chars, ",") .. "}" or "",
      definitions_known(W),
      concat(W.fn.lines, "\n"),
    }
    return concat(head, "\n"), W.places, A.vars
  end
end
