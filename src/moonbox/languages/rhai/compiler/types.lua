-- Types: what is known of a value before the script runs, and which functions may return what a variable still holds.
return function(C, lib)
  local words, has_function = C.words, C.has_function
  local NUMBERS = words("int float num")
  local SCALARS = words("int float num bool str char unit fn range")
  local COMPARISONS = words("== != < <= > >=")
  local ARITHMETIC = words("+ - * / % **")
  local BITS = words("<< >> & | ^")
  local ROUNDS = 12
  C.NUMBERS, C.SCALARS, C.COMPARISONS = NUMBERS, SCALARS, COMPARISONS
  local type_of

  local function of_operator(op, left, right)
    if left == "none" or right == "none" then return "none" end
    if ARITHMETIC[op] and NUMBERS[left] and NUMBERS[right] then
      if left == "float" or right == "float" then return "float" end
      return left == "int" and right == "int" and "int" or "num"
    end
    if BITS[op] then
      if left == "int" and right == "int" then return "int" end
      return left == "bool" and right == "bool" and "bool" or "any"
    end
    if op == "+" then
      if (left == "str" or right == "str") and SCALARS[left] and SCALARS[right] then return "str" end
      if left == "arr" and right == "arr" then return "arr" end
    end
    return "any"
  end

  local OF = {
    literal = function(expr) return expr.kind end,
    variable = function(expr) return expr.var and expr.var.type or "any" end,
    interpolated = function() return "str" end,
    array = function() return "arr" end,
    map = function() return "map" end,
    closure = function() return "fn" end,
    range = function() return "range" end,
    logic = function(expr) return expr.op == "??" and "any" or "bool" end,
  }

  function OF.binary(expr, A)
    local op = expr.op
    if COMPARISONS[op] then return "bool" end
    local left, right = type_of(expr.left, A), type_of(expr.right, A)
    if expr.assigns then
      if op == "+" and (left == "arr" or left == "map") or left == "str" and (op == "+" or op == "-") then return left end
    end
    return of_operator(op, left, right)
  end

  function OF.unary(expr, A)
    if expr.op == "!" then return "bool" end
    local inner = type_of(expr.operand, A)
    return NUMBERS[inner] and inner or "any"
  end

  function OF.call(expr, A)
    return expr.name == "contains" and #expr.args == 2 and not has_function(A.functions, "contains", 2) and "bool" or "any"
  end

  -- The length of something known to be an array is an integer.
  function OF.chain(expr, A)
    local step = expr.steps[1]
    if expr.steps[2] or step.name ~= "len" or step.args[1] or step.kind == "index" then return "any" end
    if step.kind == "method" and has_function(A.methods, "len", 0) then return "any" end
    local root = type_of(expr.root, A)
    return (root == "arr" or root == "none") and "int" or "any"
  end

  -- The type of an expression, as far as it is certain.
  function type_of(expr, A)
    local handler = OF[expr.t]
    return handler and handler(expr, A) or "any"
  end
  C.type_of = type_of

  local function joined(left, right)
    if left == right or right == "none" then return left end
    if left == "none" then return right end
    return NUMBERS[left] and NUMBERS[right] and "num" or "any"
  end

  local function one_round(pending, A)
    local changed = false
    for at = 1, #pending do
      local var = pending[at]
      local kind, values = var.type, var.values
      for number = 1, #values do
        local value = values[number]
        kind = joined(kind, lib.type(value) == "string" and value or type_of(value, A))
      end
      if kind ~= var.type then var.type, changed = kind, true end
    end
    return changed
  end

  -- Gives each variable its type: what all its values have in common, or "any".
  function C.infer(A)
    local pending = {}
    for at = 1, #A.vars do
      local var = A.vars[at]
      if var.known then
        pending[#pending + 1] = var
        var.type = "none"
      end
    end
    local settled = false
    for _ = 1, ROUNDS do
      settled = not one_round(pending, A)
      if settled then break end
    end
    for at = 1, #pending do settled = settled and pending[at].type ~= "none" end
    if settled then return end
    for at = 1, #pending do pending[at].type = "any" end
  end

  -- Lending

  local function lends(expr)
    local t = expr.t
    if t == "variable" then
      local var = expr.var
      return not var or not SCALARS[var.type] and (var.borrowed or var.captured)
    end
    if t == "chain" then return expr.steps[#expr.steps].kind ~= "method" end
    return t == "this" or t == "block_expr" or t == "logic" and expr.op == "??"
  end

  local returned

  -- A return may hide in a block within an expression.
  local function inside(expr, results)
    if not expr then return end
    if expr.t == "block_expr" then
      returned(expr.block.body, results)
    elseif expr.t == "logic" and expr.op == "??" then
      for at = 1, #expr.items do inside(expr.items[at], results) end
    end
  end

  local function in_value(stmt, results) inside(stmt.value, results) end
  local function in_body(stmt, results) returned(stmt.body.body, results) end
  local RETURNS = {
    ["return"] = function(stmt, results) if stmt.value then results[#results + 1] = stmt.value end end,
    block = function(stmt, results) returned(stmt.body, results) end,
    ["if"] = function(stmt, results)
      returned(stmt.then_.body, results)
      if stmt.other then returned(stmt.other.body, results) end
    end,
    ["while"] = in_body, ["do"] = in_body, ["for"] = in_body,
    try = function(stmt, results)
      returned(stmt.body.body, results)
      returned(stmt.handler.body, results)
    end,
    switch = function(stmt, results)
      for at = 1, #stmt.cases do inside(stmt.cases[at].body, results) end
    end,
    let = in_value, assign = in_value, ["break"] = in_value, throw = in_value,
    expr = function(stmt, results) inside(stmt.expr, results) end,
  }

  function returned(body, results)
    for at = 1, #body do
      local handler = RETURNS[body[at].t]
      if handler then handler(body[at], results) end
    end
  end

  local function tail(body, results)
    local last = body[#body]
    if not last then return end
    if last.t == "expr" then
      results[#results + 1] = last.expr
    elseif last.t == "if" then
      tail(last.then_.body, results)
      if last.other then tail(last.other.body, results) end
    end
  end

  -- Functions whose result may be part of an argument: code that keeps such a result copies it.
  function C.lenders(script)
    local lenders, passed_on, fresh = {}, {}, {} -- passed_on: the functions that return what one of that name returns
    for at = 1, #script.functions do
      local fn, results = script.functions[at], {}
      returned(fn.body.body, results)
      tail(fn.body.body, results)
      for number = 1, #results do
        local expr = results[number]
        if expr.t == "call" then
          local callers = passed_on[expr.name] or {}
          passed_on[expr.name] = callers
          callers[#callers + 1] = { fn = fn, count = #expr.args }
        elseif lends(expr) then
          fresh[#fresh + 1] = fn
        end
      end
    end
    while fresh[1] do
      local fn = fresh[#fresh]
      fresh[#fresh] = nil
      if not has_function(lenders, fn.name, #fn.params) then
        C.add_function(lenders, fn.name, #fn.params)
        local callers = passed_on[fn.name] or C.NONE
        for at = 1, #callers do
          if callers[at].count == #fn.params then fresh[#fresh + 1] = callers[at].fn end
        end
      end
    end
    return lenders
  end
end
