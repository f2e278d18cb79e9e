-- Writing branches, loops and protected blocks: if, switch, while, do, for, try.
return function(C, lib)
  local emit, tick, temp, call, use, cut, finish_ticks = C.emit, C.tick, C.temp, C.call, C.use, C.cut, C.finish_ticks
  local own, literal, label, define = C.own, C.literal, C.label, C.define
  local find_place, SCALARS = C.find_place, C.SCALARS
  local rep, concat = lib.string.rep, lib.table.concat
  local LOOP_LOCALS = 4 -- that a numeric for takes for itself

  -- The Lua statement that returns a value from the script's function.
  local function returned(W, value)
    if W.fn.in_try then return "do return 1," .. value .. " end" end
    return W.unit.changes_this and "do return " .. value .. ",this end" or "do return " .. value .. " end"
  end
  C.returned = returned

  -- Variables of the function being written, where their number is limited.
  local function count_variables(W, count, pos)
    local most = W.limits.max_variables
    if not most then return end
    if W.variables > most - count then emit(W, call(W, "too_many_variables", pos)) end
    W.variables = W.variables + count
  end
  C.count_variables = count_variables

  local function branch(W, block, dest)
    local locals, variables = W.fn.locals, W.variables
    C.write_statements(W, block.body, dest)
    W.fn.locals, W.variables = locals, variables
  end

  function C.write_if(W, stmt, dest)
    local ends, fn = 1, W.fn
    local mark = fn.top
    emit(W, "if " .. C.write_condition(W, stmt.condition) .. " then")
    fn.top = mark
    while true do
      cut(W)
      branch(W, stmt.then_, dest)
      local other = stmt.other
      if not other then
        if dest then emit(W, "else " .. dest .. "=U") end
        break
      end
      local following = not other.body[2] and other.body[1]
      if not following or following.t ~= "if" then
        emit(W, "else")
        cut(W)
        branch(W, other, dest)
        break
      end
      local inline = C.inline(W, following.condition)
      if inline and inline.type == "bool" then
        emit(W, "elseif " .. inline.text .. " then")
        cut(W)
        tick(W, following.pos)
        C.tick_inline(W, following.condition)
      else
        emit(W, "else")
        cut(W)
        tick(W, following.pos)
        emit(W, "if " .. C.write_condition(W, following.condition) .. " then")
        fn.top = mark
        ends = ends + 1
      end
      stmt = following
    end
    emit(W, rep("end ", ends))
    cut(W)
  end

  -- Switch

  local function matches(W, expr, value)
    if expr.t == "literal" then
      local text = literal(W, expr).text
      if expr.kind == "int" or expr.kind == "float" then
        local kind = expr.kind == "int" and '"integer"' or '"float"'
        return "(" .. value .. "==" .. text .. " and " .. call(W, "number_type", value) .. "==" .. kind .. ")"
      end
      return value .. "==" .. text
    end
    return call(W, expr.t == "range" and "in_range" or "same", value, C.write_uncounted(W, expr).text)
  end

  local function case_body(W, case, dest)
    local value = C.write_expr(W, case.body)
    if dest then emit(W, dest .. "=" .. own(W, value).text) end
  end

  -- The part of a case that its ranges or its other values choose.
  local function write_case(W, case, ranges, value, dest, ending)
    local mark, tests = W.fn.top, {}
    for at = 1, #case.values do
      local each = case.values[at]
      if (each.t == "range") == ranges then tests[#tests + 1] = matches(W, each, value) end
    end
    if not tests[1] then return end
    emit(W, "if " .. concat(tests, " or ") .. " then")
    cut(W)
    if case.guard then
      emit(W, "if " .. C.write_condition(W, case.guard) .. " then")
      cut(W)
    end
    case_body(W, case, dest)
    finish_ticks(W)
    emit(W, "goto " .. ending .. " end" .. (case.guard and " end" or ""))
    cut(W)
    W.fn.top = mark
  end

  function C.write_switch(W, stmt, dest)
    local value = temp(W)
    local mark = W.fn.top
    emit(W, value .. "=" .. C.write_expr(W, stmt.value).text)
    W.fn.top = mark
    local ending, default = label(W, "W"), nil
    emit(W, "do")
    for at = 1, #stmt.cases do -- values first, wherever they stand; then the ranges; then the default
      local case = stmt.cases[at]
      write_case(W, case, false, value, dest, ending)
      if not case.values[1] then default = default or case end
    end
    for at = 1, #stmt.cases do write_case(W, stmt.cases[at], true, value, dest, ending) end
    if default then
      case_body(W, default, dest)
    elseif dest then
      emit(W, dest .. "=U")
    end
    cut(W)
    emit(W, "::" .. ending .. ":: end")
    cut(W)
  end

  -- Loops

  function C.write_jump(W, stmt)
    local loop = W.loops[#W.loops]
    if stmt.value then
      local value = own(W, C.write_expr(W, stmt.value)).text
      if loop.dest then emit(W, loop.dest .. "=" .. value) end
    end
    if loop.fn ~= W.fn then
      emit(W, "do return " .. (stmt.is_continue and 3 or 2) .. " end")
    elseif stmt.is_continue then
      loop.continued = true
      emit(W, "goto " .. loop.label)
    else
      emit(W, "break")
    end
  end

  -- The body of a loop; `continue` goes to its end.
  local function body(W, block, loop)
    if not block.body[1] then tick(W, block.pos) end
    C.write_block(W, block, nil)
    finish_ticks(W)
    if loop.continued then emit(W, "::" .. loop.label .. "::") end
  end

  local function write_while(W, stmt, loop)
    emit(W, "while true do")
    cut(W)
    if stmt.condition then
      local mark = W.fn.top
      emit(W, "if not (" .. C.write_condition(W, stmt.condition) .. ") then break end")
      cut(W)
      W.fn.top = mark
    end
    if stmt.body.body[1] or not stmt.condition then body(W, stmt.body, loop) end
    finish_ticks(W)
    emit(W, "end")
  end

  -- `continue` starts the body again without a look at the condition, as the reference does.
  local function write_do(W, stmt, loop)
    local again = label(W, "A")
    emit(W, "while true do")
    emit(W, "do")
    cut(W)
    if stmt.body.body[1] then
      loop.label = again
      C.write_block(W, stmt.body, nil)
      cut(W)
    end
    local mark = W.fn.top
    local condition = C.write_condition(W, stmt.condition)
    emit(W, stmt.until_ and "if " .. condition .. " then break end" or "if not (" .. condition .. ") then break end")
    W.fn.top = mark
    finish_ticks(W)
    emit(W, loop.continued and "end ::" .. again .. "::" or "end")
    emit(W, "end")
  end

  local function range_ends(W, items)
    tick(W, items.pos)
    local low, high = temp(W), temp(W)
    local left, right = C.write_ends(W, items)
    local inclusive = items.inclusive and "true" or "false"
    emit(W, low .. "," .. high .. "=" .. call(W, "ends", left.text, right.text, inclusive, items.pos))
    return low, high
  end

  -- Whether the body can change what the loop goes through.
  local function may_change(W, stmt)
    local var = stmt.items.t == "variable" and stmt.items.var
    return not var or var.captured or C.may_write(W.unit, var, stmt.from, stmt.to)
  end

  local function elements(W, stmt)
    local items, size = temp(W), temp(W)
    local value = C.write_expr(W, stmt.items)
    local text = value.text
    if not value.owned and not SCALARS[value.type] and may_change(W, stmt) then text = call(W, "copy", text) end
    emit(W, items .. "," .. size .. "=" .. call(W, "iterate", text, stmt.items.pos))
    return items, size
  end

  -- Gives a variable of the loop its value for one round.
  local function round(W, var, value)
    if var.captured then
      emit(W, var.lua .. "=" .. value)
    else
      define(W, var, value)
    end
  end

  local function write_for(W, stmt, loop)
    local fn, var, counter = W.fn, stmt.var, stmt.counter_var
    count_variables(W, stmt.declared, stmt.name_pos)
    fn.locals = fn.locals + LOOP_LOCALS
    if fn.locals > C.MAX_WITH_LOOPS then C.fail_at(nil, "Too many loops within each other", stmt.pos) end
    local count, over_range = label(W, "n"), stmt.items.t == "range"
    local first, last, item, index
    if over_range then
      first, last = range_ends(W, stmt.items)
      item, index = count, count .. "-" .. first
    else
      local items
      items, last = elements(W, stmt)
      first, item, index = "1", items .. "[" .. count .. "]", count .. "-1"
    end
    -- One variable for all rounds, as closures see it.
    if var.captured then define(W, var, "nil") end
    if counter and counter.captured then define(W, counter, "nil") end
    local plain = over_range and not var.captured and not var.values[2] and find_place(W, var)
    if plain then
      count, index = var.lua, var.lua .. "-" .. first
    end
    emit(W, "for " .. count .. "=" .. first .. "," .. last .. " do")
    if not plain then round(W, var, item) end
    if var.borrowed and (var.changed or var.captured) and not SCALARS[var.type] then
      emit(W, var.lua .. "=" .. call(W, "copy", var.lua))
    end
    if counter then round(W, counter, index) end
    cut(W)
    body(W, stmt.body, loop)
    emit(W, "end")
  end

  local LOOPS = { ["while"] = write_while, ["do"] = write_do, ["for"] = write_for }

  function C.write_loop(W, stmt, dest)
    if dest then emit(W, dest .. "=U") end
    local loop = { fn = W.fn, dest = dest, label = label(W, "L"), continued = false }
    W.loops[#W.loops + 1] = loop
    local locals, variables = W.fn.locals, W.variables
    emit(W, "do")
    LOOPS[stmt.t](W, stmt, loop)
    emit(W, "end")
    W.fn.locals, W.variables = locals, variables
    W.loops[#W.loops] = nil
    cut(W)
  end

  -- Errors

  -- What the protected body wanted: to return, to break or to continue.
  local function after_try(W, state, value)
    emit(W, "elseif " .. state .. "==1 then " .. returned(W, value))
    local loop = W.loops[#W.loops]
    if loop and loop.fn == W.fn then
      emit(W, "elseif " .. state .. "==2 then break elseif " .. state .. " then goto " .. loop.label)
      loop.continued = true
    elseif loop then
      emit(W, "elseif " .. state .. " then return " .. state)
    end
    emit(W, "end")
    cut(W)
  end

  function C.write_try(W, stmt, dest)
    local state, value, fine = temp(W), temp(W), temp(W)
    local outer, catching = W.fn, W.catching
    local inner = C.new_function(W)
    W.fn, W.catching = inner, nil
    inner.in_try = true
    C.write_block(W, stmt.body, dest)
    W.fn, W.catching = outer, catching
    emit(W, fine .. "," .. state .. "," .. value .. "=" .. use(W, "pcall") .. "(function()")
    C.emit_all(W, C.declarations(W, inner))
    C.emit_all(W, inner.lines)
    emit(W, "end)")
    emit(W, "if not " .. fine .. " then")
    local locals, variables = outer.locals, W.variables
    local problem = temp(W)
    emit(W, value .. "," .. problem .. "=" .. call(W, "catch", "K", "d", state, stmt.var and "true" or "false"))
    cut(W)
    if stmt.var then
      count_variables(W, 1, stmt.name_pos)
      define(W, stmt.var, value)
    end
    W.catching = problem
    C.write_block(W, stmt.handler, nil)
    W.catching = catching
    outer.locals, W.variables = locals, variables
    if dest then emit(W, dest .. "=U") end
    after_try(W, state, value)
  end

end
