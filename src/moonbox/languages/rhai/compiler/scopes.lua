-- Scopes: which variable each name means, who captures it, who changes it.
--
-- The tree is walked in the order of evaluation, on a clock that advances with each name, write and call. An expression keeps
-- the time before and after it (from, to), and each variable the times at which each unit writes it: whether a part of the
-- script may write a variable is a look at these times.
--
--   unit      a function, a closure or the script itself: parent, is_closure, changes_this, params, free (names that a closure
--             takes from outside, in order), free_pos, captured (a set), calls (times)
--   variable  name, unit, const; borrowed: it may share its value with a variable of someone else; top: it lives on between
--             runs; replaces: the variable of that name in the same block whose place it takes; captured; shared_from (time);
--             changed: an array or map in it may be changed in place; values: what is assigned to it, expressions or names of
--             types; type; and when the text is written lua, where it lives, and cell
return function(C, lib)
  local PURE, CHANGING = C.PURE, C.CHANGING
  local new_scope, push_name, cut_names, value_of_name = C.new_scope, C.push_name, C.cut_names, C.value_of_name
  local visit, visit_all, visit_body, visit_statement

  -- Functions by their names and numbers of parameters.
  local function add_function(set, name, count)
    set[name] = set[name] or {}
    set[name][count] = true
  end

  local function has_function(set, name, count)
    local counts = set[name]
    return counts ~= nil and counts[count] == true
  end
  C.add_function, C.has_function = add_function, has_function

  local function new_unit(parent, is_closure)
    return {
      parent = parent, is_closure = is_closure, changes_this = false, params = {}, free = {}, free_pos = {}, captured = {},
      calls = {},
    }
  end

  local function new_variable(A, name, kind, const, borrowed)
    local var = {
      name = name, unit = A.unit, const = const or false, borrowed = borrowed or false, top = false, replaces = nil,
      captured = false, shared_from = nil, changed = false, values = {}, type = "any", lua = nil, cell = false,
      known = true, writes = {},
    }
    A.vars[#A.vars + 1] = var
    if kind then
      if kind == "any" then var.known = false else var.values[1] = kind end
    end
    return var
  end

  local function add_value(var, value)
    if value == "any" then
      var.known = false
    else
      var.values[#var.values + 1] = value
    end
  end

  local function bring_in(A, var)
    push_name(A.scope, var.name, var)
    A.private[#A.private + 1] = var
  end

  local function tick(A)
    local now = A.clock + 1
    A.clock = now
    return now
  end

  local function note_call(A)
    local calls = A.unit.calls
    calls[#calls + 1] = tick(A)
  end

  local function note_write(A, var)
    local times = var.writes[A.unit]
    if not times then
      times = {}
      var.writes[A.unit] = times
    end
    times[#times + 1] = tick(A)
  end

  local function any_within(times, from, to)
    local low, high = 1, #times
    while low <= high do
      local middle = (low + high) // 2
      if times[middle] <= from then low = middle + 1 else high = middle - 1 end
    end
    return times[low] ~= nil and times[low] <= to
  end

  -- Whether the unit writes the variable between two times; or calls something, which may change it if it is captured.
  function C.may_write(unit, var, from, to)
    if from == to then return false end
    local times = var.writes[unit]
    if times and any_within(times, from, to) then return true end
    return var.captured and any_within(unit.calls, from, to)
  end

  -- Whether a closure already holds the variable when this name is evaluated, as far as the text tells.
  function C.is_shared(node)
    local from = node.var and node.var.shared_from
    return from ~= nil and from < node.order
  end

  -- What is changed in place through its root.
  local function changed(A, root, keeps_type)
    if root.t == "this" then
      A.unit.changes_this = true
    elseif root.t == "variable" and root.var then
      root.var.changed = true
      if not keeps_type then add_value(root.var, "any") end
      note_write(A, root.var)
    end
  end

  -- Statements

  local function visit_let(A, stmt, top)
    if stmt.value then visit(A, stmt.value) end
    local scope = A.scope
    local at = scope.latest[stmt.name]
    local var = new_variable(A, stmt.name, stmt.value or "unit", stmt.const)
    var.top, var.replaces = top, at and at > scope.frame and scope.values[at] or nil
    if top then A.top_names[stmt.name] = true end
    stmt.var = var
    bring_in(A, var)
  end

  local function visit_for(A, stmt)
    visit(A, stmt.items)
    local before = A.scope.size
    local over_range = stmt.items.t == "range"
    local var = new_variable(A, stmt.name, over_range and "int" or "any", false, not over_range)
    stmt.var, stmt.declared = var, 1
    if stmt.counter then
      stmt.counter_var, stmt.declared = new_variable(A, stmt.counter, "int"), 2
      bring_in(A, stmt.counter_var)
    end
    bring_in(A, var)
    stmt.from = A.clock
    visit_body(A, stmt.body.body)
    stmt.to = A.clock
    cut_names(A.scope, before)
  end

  local function visit_try(A, stmt)
    visit_body(A, stmt.body.body)
    local before = A.scope.size
    if stmt.name then
      stmt.var = new_variable(A, stmt.name, "any")
      bring_in(A, stmt.var)
    end
    visit_body(A, stmt.handler.body)
    cut_names(A.scope, before)
    note_call(A)
  end

  local function visit_assign(A, stmt)
    visit(A, stmt.value)
    local target = stmt.target
    if target.t == "this" then
      A.unit.changes_this = true
      return
    end
    visit(A, target)
    if target.t == "chain" then
      changed(A, target.root, true)
    elseif target.var then
      local var = target.var
      if stmt.op ~= "" then
        var.changed = true
        add_value(var, { t = "binary", op = stmt.op, left = target, right = stmt.value, pos = stmt.pos, assigns = true })
      else
        add_value(var, stmt.value)
      end
      note_write(A, var)
    end
  end

  local function visit_switch(A, stmt)
    visit(A, stmt.value)
    for at = 1, #stmt.cases do
      local case = stmt.cases[at]
      visit_all(A, case.values)
      if case.guard then visit(A, case.guard) end
      visit(A, case.body)
    end
  end

  local function visit_value(A, stmt)
    if stmt.value then visit(A, stmt.value) end
  end

  local STATEMENTS = {
    let = visit_let, assign = visit_assign, switch = visit_switch, ["for"] = visit_for, try = visit_try,
    ["break"] = visit_value, ["return"] = visit_value, throw = visit_value,
    expr = function(A, stmt) visit(A, stmt.expr) end,
    block = function(A, stmt) visit_body(A, stmt.body) end,
    ["if"] = function(A, stmt)
      visit(A, stmt.condition)
      visit_body(A, stmt.then_.body)
      if stmt.other then visit_body(A, stmt.other.body) end
    end,
    ["while"] = function(A, stmt)
      if stmt.condition then visit(A, stmt.condition) end
      visit_body(A, stmt.body.body)
    end,
    ["do"] = function(A, stmt)
      visit_body(A, stmt.body.body)
      visit(A, stmt.condition)
    end,
    import = function(A, stmt)
      visit(A, stmt.path)
      note_call(A)
    end,
  }

  function visit_statement(A, stmt, top)
    local handler = STATEMENTS[stmt.t]
    if handler then handler(A, stmt, top) end
  end

  function visit_body(A, body, top)
    local scope = A.scope
    local frame, size = scope.frame, scope.size
    scope.frame = size
    for at = 1, #body do visit_statement(A, body[at], top or false) end
    cut_names(scope, size)
    scope.frame = frame
  end

  -- Expressions

  local function visit_name(A, node)
    node.order = tick(A)
    local var = not node.path and value_of_name(A.scope, node.name) or nil
    node.var = var
    if node.path or not var and A.names[node.name] then return end
    local unit = A.unit
    while unit and unit.is_closure and (not var or var.unit ~= unit) do
      if unit.free_pos[node.name] == nil then
        unit.free_pos[node.name] = node.pos
        unit.free[#unit.free + 1] = node.name
      end
      if var then
        unit.captured[var] = true
        var.captured = true
      end
      unit = unit.parent
    end
  end

  -- A function that runs in this scope may read and write every variable in it.
  local function escape_all(A)
    for at = 1, #A.private do
      A.private[at].changed = true
      add_value(A.private[at], "any")
    end
    A.private = {}
  end

  local function visit_call(A, expr)
    visit_all(A, expr.args)
    note_call(A)
    local first, elsewhere = expr.args[1], expr.path or expr.in_scope or PURE[expr.name]
    if first and not elsewhere and not has_function(A.functions, expr.name, #expr.args) then
      changed(A, first, CHANGING[expr.name])
    end
    if expr.in_scope then escape_all(A) end
  end

  local function visit_chain(A, expr)
    local steps = expr.steps
    visit(A, expr.root)
    for at = 1, #steps do visit_all(A, steps[at].args) end
    for at = 1, #steps do
      local step = steps[at]
      if step.kind == "method" then
        note_call(A)
        local own = has_function(A.methods, step.name, #step.args)
        if own or not PURE[step.name] then changed(A, expr.root, not own and CHANGING[step.name]) end
      end
    end
  end

  local function enter(A, node, unit)
    node.unit = unit
    A.unit = unit
    for at = 1, #node.params do
      local var = new_variable(A, node.params[at], "any", false, true)
      unit.params[at] = var
      bring_in(A, var)
    end
  end

  local function visit_closure(A, closure)
    local outer, before = A.unit, A.scope.size
    local unit = new_unit(outer, true)
    enter(A, closure, unit)
    visit_statement(A, closure.body, false)
    cut_names(A.scope, before)
    A.unit = outer
    local now = tick(A)
    for var in lib.next, unit.captured do var.shared_from = var.shared_from or now end
  end

  local function visit_items(A, expr) visit_all(A, expr.items) end
  local function visit_sides(A, expr)
    visit(A, expr.left)
    visit(A, expr.right)
  end

  local EXPRESSIONS = {
    variable = visit_name, call = visit_call, chain = visit_chain, closure = visit_closure,
    interpolated = visit_items, array = visit_items, map = visit_items, logic = visit_items,
    binary = visit_sides, range = visit_sides,
    unary = function(A, expr) visit(A, expr.operand) end,
    block_expr = function(A, expr) visit_body(A, expr.block.body) end,
  }

  function visit(A, expr)
    expr.from = A.clock
    local handler = EXPRESSIONS[expr.t]
    if handler then handler(A, expr) end
    expr.to = A.clock
  end

  function visit_all(A, items)
    for at = 1, #items do visit(A, items[at]) end
  end

  -- The analysis of a script.
  function C.analyse(script)
    local A = {
      names = {}, functions = {}, methods = {}, top_names = {}, vars = {}, private = {},
      clock = 0, scope = new_scope(), main = new_unit(nil, false),
    }
    for at = 1, #script.functions do
      local fn = script.functions[at]
      A.names[fn.name] = true
      add_function(A.methods, fn.name, #fn.params)
      if not fn.this_type then add_function(A.functions, fn.name, #fn.params) end
    end
    A.unit = A.main
    visit_body(A, script.body, true)
    for at = 1, #script.functions do
      local fn = script.functions[at]
      local before = A.scope.size
      enter(A, fn, new_unit(nil, false))
      visit_body(A, fn.body.body)
      cut_names(A.scope, before)
    end
    A.unit = A.main
    return A
  end
end
