-- What has no side effects, in the reference's sense of it.
return function(C, lib)
  local all, is_constant = C.all, C.is_constant
  local is_pure, stmt_is_pure, is_pure_inside

  local function all_pure(block) return all(block.body, stmt_is_pure) end

  local function items_pure(expr) return all(expr.items, is_pure) end

  local EXPRESSIONS = {
    interpolated = items_pure, array = items_pure, logic = items_pure, map = items_pure,
    block_expr = function(expr) return all_pure(expr.block) end,
    range = function(expr) return expr.left.t == "literal" and expr.right.t == "literal" end,
  }

  -- Whether evaluating it does nothing but give a value; reading a variable may fail, so it is not.
  function is_pure(expr)
    local test = EXPRESSIONS[expr.t]
    if test then return test(expr) end
    return is_constant(expr)
  end

  local function pure_switch(stmt)
    local has_default = false
    for at = 1, #stmt.cases do
      local case = stmt.cases[at]
      if case.guard and not is_pure(case.guard) or not is_pure(case.body) then return false end
      has_default = has_default or not case.values[1]
    end
    return has_default and is_pure(stmt.value)
  end

  local STATEMENTS = {
    noop = function() return true end,
    expr = function(stmt) return is_pure(stmt.expr) end,
    ["if"] = function(stmt)
      return is_pure(stmt.condition) and all_pure(stmt.then_) and (not stmt.other or all_pure(stmt.other))
    end,
    switch = pure_switch,
    ["while"] = function(stmt)
      local test = stmt.condition
      return test ~= nil and test.t == "literal" and test.value == false
    end,
    ["do"] = function(stmt)
      return stmt.condition.t == "literal" and stmt.condition.value == stmt.until_ and all_pure(stmt.body)
    end,
    ["for"] = function(stmt) return is_pure(stmt.items) and all_pure(stmt.body) end,
    block = all_pure,
    try = function(stmt) return all_pure(stmt.body) and all_pure(stmt.handler) end,
  }

  function stmt_is_pure(stmt)
    local test = STATEMENTS[stmt.t]
    return test ~= nil and test(stmt)
  end

  local INSIDE = {
    let = function(stmt) return not stmt.value or is_pure(stmt.value) end,
    expr = function(stmt)
      if stmt.expr.t == "block_expr" then return all(stmt.expr.block.body, is_pure_inside) end
      return is_pure(stmt.expr)
    end,
    import = function(stmt) return is_pure(stmt.path) end,
    export = function() return true end,
  }

  -- Whether its effects end with the block that holds it.
  function is_pure_inside(stmt)
    local test = INSIDE[stmt.t]
    if test then return test(stmt) end
    return stmt_is_pure(stmt)
  end

  -- Whether it means something else outside the block that holds it.
  local function depends_on_block(stmt)
    local t = stmt.t
    if t == "let" or t == "import" or t == "export" then return true end
    if t ~= "expr" then return false end
    local expr = stmt.expr
    if expr.t == "block_expr" then return all(expr.block.body, depends_on_block) end
    return expr.t == "call" and expr.name == "eval" and not expr.path
  end

  local VALUED = { ["if"] = true, switch = true, block = true, expr = true }
  function C.returns_value(stmt) return VALUED[stmt.t] == true end

  C.is_pure, C.stmt_is_pure, C.is_pure_inside, C.depends_on_block = is_pure, stmt_is_pure, is_pure_inside, depends_on_block
end
