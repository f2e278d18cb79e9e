-- The optimizer: drops and simplifies what the reference does, since that shows in results and operation counts.
return function(C, lib)
  local fold, is_pure, stmt_is_pure, is_pure_inside = C.fold, C.is_pure, C.stmt_is_pure, C.is_pure_inside
  local depends_on_block, returns_value, all, pos_of = C.depends_on_block, C.returns_value, C.all, C.pos_of
  local push_name, cut_names = C.push_name, C.cut_names
  local WITH_ASSIGNMENT = C.words("+ - * / << >> % ** & | ^")
  local JUMPS = { ["return"] = true, throw = true, ["break"] = true }
  local LONGEST = 64 -- characters of a string that is put wherever its constant is used
  local statements

  -- Blocks without variables of their own are part of what holds them.
  local function flattened(body)
    local flat = {}
    for at = 1, #body do
      local stmt = body[at]
      local keep = stmt.t ~= "block"
      if not keep then
        for inner = 1, #stmt.body do keep = keep or depends_on_block(stmt.body[inner]) end
      end
      if keep then
        flat[#flat + 1] = stmt
      elseif not stmt.body[1] then
        flat[#flat + 1] = { t = "noop", pos = stmt.pos }
      else
        for inner = 1, #stmt.body do flat[#flat + 1] = stmt.body[inner] end
      end
    end
    return flat
  end

  -- Nothing after a jump is reached.
  local function until_jump(body)
    for at = 1, #body do
      if JUMPS[body[at].t] then
        for after = #body, at + 1, -1 do body[after] = nil end
        break
      end
    end
    return body
  end

  -- The statements without those that do nothing; variables that cannot be used any more count among them.
  local function without_pure(body, judge, preserve)
    local last, size = 1, #body
    for at = size, 1, -1 do
      if not judge(body[at]) then
        last = at
        break
      end
    end
    local remaining = {}
    for at = 1, size do
      local stmt = body[at]
      local final = preserve and at == size
      local drops = not final
        and (at >= last and judge(stmt) or stmt.t == "expr" and stmt.expr.t == "variable" or stmt_is_pure(stmt))
      if not drops then remaining[#remaining + 1] = stmt end
    end
    return remaining
  end

  -- The end of a body whose value counts. True while there may be more to trim.
  local function trim_valued(body, judge, reduce_return)
    local size = #body
    local last, before = body[size], body[size - 1]
    if reduce_return and last.t == "return" then
      if last.value then
        body[size] = { t = "expr", expr = last.value }
      elseif not before or not returns_value(before) then
        body[size] = nil
      else
        body[size] = { t = "noop", pos = last.pos }
      end
      return true
    end
    if not before then
      if returns_value(last) or not judge(last) then return false end
      body[size] = nil
      return true
    end
    if last.t == "noop" and returns_value(before) then return false end
    if returns_value(last) or not judge(last) then return false end
    if returns_value(before) then
      body[size] = { t = "noop", pos = pos_of(last) }
    else
      body[size] = nil
    end
    return true
  end

  local function trimmed(body, judge, preserve, reduce_return)
    while body[1] do
      if preserve then
        if not trim_valued(body, judge, reduce_return) then break end
      else
        local last = body[#body]
        local useless = judge(last)
          or reduce_return and last.t == "return" and (not last.value or is_pure(last.value))
        if not useless then break end
        body[#body] = nil
      end
    end
    return body
  end

  local function add_names(O, names)
    for at = 1, #names do push_name(O.constants, names[at], false) end
  end

  local function promoted(block)
    local first = block.body[1]
    if not first then return { t = "noop", pos = block.pos } end
    if not block.body[2] and not depends_on_block(first) then return first end
    return block
  end

  local function body_of(O, block, preserve) statements(O, block, preserve, is_pure_inside, false) end
  C.optimize_block = body_of

  function C.optimize_closure(O, closure)
    local before = O.constants.size
    add_names(O, closure.params)
    local block = C.as_block(closure.body)
    statements(O, block, true, stmt_is_pure, true)
    closure.body = block
    cut_names(O.constants, before)
  end

  local function is_propagated(value)
    if value.t ~= "literal" then return false end
    return value.kind ~= "str" or #value.value <= LONGEST * 4 and lib.utf8.len(value.value) <= LONGEST
  end

  local function optimize_let(O, stmt)
    local constant = false
    if stmt.value then
      stmt.value = fold(O, stmt.value)
      if stmt.const and is_propagated(stmt.value) then constant = stmt.value end
    end
    push_name(O.constants, stmt.name, constant)
  end

  local function optimize_assign(O, stmt)
    local target, value = stmt.target, stmt.value
    if stmt.op == "" and target.t == "variable" and value.t == "binary" and WITH_ASSIGNMENT[value.op]
      and value.left.t == "variable" and not value.left.path and value.left.name == target.name then
      stmt.op, stmt.pos, stmt.value = value.op, value.pos, value.right
    end
    if target.t ~= "variable" then stmt.target = fold(O, target) end
    stmt.value = fold(O, stmt.value)
  end

  local function optimize_if(O, stmt, preserve)
    local condition = fold(O, stmt.condition)
    stmt.condition = condition
    if condition.t == "literal" and condition.kind == "bool" then
      local chosen = condition.value and stmt.then_ or not condition.value and stmt.other
      if not chosen then return { t = "noop", pos = condition.pos } end
      body_of(O, chosen, preserve)
      return promoted(chosen)
    end
    body_of(O, stmt.then_, preserve)
    if stmt.other then
      body_of(O, stmt.other, preserve)
      if not stmt.other.body[1] then stmt.other = nil end
    end
    if not stmt.then_.body[1] and not stmt.other then
      local rest = { t = "expr", expr = condition }
      if not preserve then return rest end
      return { t = "block", body = { rest, { t = "noop", pos = stmt.pos } }, pos = stmt.pos }
    end
    return stmt
  end

  local function optimize_switch(O, stmt)
    stmt.value = fold(O, stmt.value)
    for at = 1, #stmt.cases do
      local case = stmt.cases[at]
      if case.guard then case.guard = fold(O, case.guard) end
      case.body = fold(O, case.body)
    end
  end

  local function optimize_while(O, stmt)
    local condition = stmt.condition and fold(O, stmt.condition)
    stmt.condition = condition
    if condition and condition.t == "literal" then
      if condition.value == false then return { t = "noop", pos = condition.pos } end
      if condition.value == true then stmt.condition = nil end
    end
    body_of(O, stmt.body, false)
    return stmt
  end

  local function optimize_for(O, stmt)
    stmt.items = fold(O, stmt.items)
    local before = O.constants.size
    add_names(O, { stmt.name, stmt.counter })
    body_of(O, stmt.body, false)
    cut_names(O.constants, before)
  end

  local function optimize_try(O, stmt)
    local harmless = all(stmt.body.body, stmt_is_pure)
    body_of(O, stmt.body, false)
    if harmless then return promoted(stmt.body) end
    local before = O.constants.size
    add_names(O, { stmt.name })
    body_of(O, stmt.handler, false)
    cut_names(O.constants, before)
    return stmt
  end

  local function optimize_value(O, stmt)
    if stmt.value then stmt.value = fold(O, stmt.value) end
  end

  -- Each gives the statement that takes the place of this one, or nothing where it stays.
  local STATEMENTS = {
    let = optimize_let, assign = optimize_assign, ["if"] = optimize_if, switch = optimize_switch, ["while"] = optimize_while,
    ["for"] = optimize_for, try = optimize_try,
    ["return"] = optimize_value, throw = optimize_value, ["break"] = optimize_value,
    expr = function(O, stmt)
      stmt.expr = fold(O, stmt.expr)
      if stmt.expr.t == "block_expr" then return promoted(stmt.expr.block) end
    end,
    block = function(O, stmt, preserve)
      body_of(O, stmt, preserve)
      return promoted(stmt)
    end,
    ["do"] = function(O, stmt)
      stmt.condition = fold(O, stmt.condition)
      body_of(O, stmt.body, false)
    end,
    import = function(O, stmt) stmt.path = fold(O, stmt.path) end,
  }

  -- `preserve`: the value of the last statement counts. `judge` tells what can go.
  function statements(O, block, preserve, judge, reduce_return)
    local before = O.constants.size
    local body = until_jump(flattened(block.body))
    local size = #body
    for at = 1, size do
      local stmt = body[at]
      local optimize = STATEMENTS[stmt.t]
      body[at] = optimize and optimize(O, stmt, preserve and at == size) or stmt
    end
    cut_names(O.constants, before)
    body = without_pure(until_jump(flattened(body)), judge, preserve)
    block.body = trimmed(body, judge, preserve, reduce_return)
  end

  -- Simplifies a script in place.
  function C.optimize(script)
    script.expanded = 0
    local originals = {}
    local function uncounted() end
    if script.runs_in_scope then
      for at = 1, #script.functions do
        local fn = script.functions[at]
        originals[fn.name .. "\0" .. #fn.params] = C.copied(fn, uncounted)
      end
    end
    local function whole(block, params)
      local O = { script = script, functions = originals, constants = C.new_scope(), expanding = 0 }
      add_names(O, params)
      statements(O, block, true, stmt_is_pure, true)
    end
    for at = 1, #script.functions do whole(script.functions[at].body, script.functions[at].params) end
    local block = { t = "block", body = script.body, pos = 0 }
    whole(block, {})
    script.body = block.body
  end
end
