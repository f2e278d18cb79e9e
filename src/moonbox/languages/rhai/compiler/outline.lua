-- The outline of a script for the host's checker: the tree of languages/program.py as JSON.
--
-- A node is an array that starts with its name. Positions are those of the lexer. The host loads this file after those of the
-- parser; a worker does not need it.
return function(C, lib)
  local concat, format, gsub, byte = lib.table.concat, lib.string.format, lib.string.gsub, lib.string.byte
  local number_type, huge, next = lib.math.type, lib.math.huge, lib.next
  local start_of, pos_of = C.start_of, C.pos_of
  local GROWS = C.words("push insert append set")
  local MOST_WORDS = 12000

  local assigned, fields, filled, has_modules -- of the script being written
  local value, statement, block

  local function escaped(char) return format("\\u%04x", byte(char)) end
  local function quoted(text) return '"' .. gsub(text, '[%c"\\]', escaped) .. '"' end

  local function list(items, write)
    local out = {}
    for at = 1, #items do out[at] = write(items[at]) end
    return "[" .. concat(out, ",") .. "]"
  end

  local function count(names, name) names[name] = (names[name] or 0) + 1 end

  local function other(pos, parts, what) return format('["other",%d,[%s],"%s"]', pos, parts, what or "") end

  -- Values

  local function constant(pos, text, stop) return format('["constant",%d,%s,%d]', pos, text, stop or 0) end

  local function literal(expr)
    local kind, known = expr.kind, expr.value
    if kind == "unit" then return constant(expr.pos, "null") end
    if kind == "bool" then return constant(expr.pos, known and "true" or "false", expr.stop) end
    if kind == "int" then return constant(expr.pos, format("%d", known), expr.stop) end
    if kind ~= "float" then return constant(expr.pos, quoted(known), expr.stop) end
    if known ~= known or known == huge or known == -huge then return other(expr.pos, "") end
    return constant(expr.pos, format("%.17e", known), expr.stop)
  end

  -- A variable, a function, or `space::name`, which is a tool in a namespace.
  local function named(expr, stop)
    local path, start = expr.path, expr.path_pos or expr.pos
    if not path or #path == 1 and path[1] == "global" then
      return format('["name",%d,%s,%d]', start, quoted(expr.name), stop or 0)
    end
    local out = format('["name",%d,"tools"]', start)
    for at = 1, #path do out = format('["field",%d,%s,%s,%d]', start, out, quoted(path[at]), start) end
    return format('["field",%d,%s,%s,%d,%d]', start, out, quoted(expr.name), expr.pos, stop or 0)
  end

  -- The variable that a chain starts at.
  local function root_of(expr)
    local root = expr.t == "chain" and expr.root or expr
    return root.t == "variable" and not root.path and root.name or ""
  end

  local function chain(expr)
    local start, out = expr.root.path_pos or start_of(expr), value(expr.root)
    for at = 1, #expr.steps do
      local step = expr.steps[at]
      local index = step.args[1]
      if step.kind == "method" then
        if GROWS[step.name] then count(filled, root_of(expr)) end
        out = format(
          '["method",%d,%s,%s,%s,%d,%d]', start, out, quoted(step.name), list(step.args, value), step.pos, step.stop
        )
      elseif step.kind == "property" or index.t == "literal" and index.kind == "str" then
        local name = index and index.value or step.name
        out = format('["field",%d,%s,%s,%d,%d]', start, out, quoted(name), step.pos, step.stop)
      else
        out = format('["index",%d,%s,%s,%d]', start, out, value(index), step.stop)
      end
    end
    return out
  end

  local function operation(pos, operator, left, right)
    return format('["operation",%d,"%s",%s,%s]', pos, operator, left, right)
  end

  local function logic(expr)
    local operator, out = expr.op == "??" and "or" or expr.op, value(expr.items[1])
    for at = 2, #expr.items do out = operation(expr.pos, operator, out, value(expr.items[at])) end
    return out
  end

  local function call(expr)
    if expr.infix then return operation(expr.pos, "in", value(expr.args[2]), value(expr.args[1])) end
    local start = expr.path_pos or expr.pos
    return format('["functioncall",%d,%s,%s,true,%d]', start, named(expr), list(expr.args, value), expr.stop)
  end

  local function range(expr)
    local parts = value(expr.left)
    if expr.right.kind ~= "unit" then parts = parts .. "," .. value(expr.right) end
    return parts
  end

  -- Statements whose last value is that of a function.
  local function function_body(statements)
    local out, last = {}, statements[#statements]
    for at = 1, #statements do out[at] = statement(statements[at]) end
    if last and last.t == "expr" then
      out[#out] = format('["return",%d,[%s]]', pos_of(last), value(last.expr))
    elseif last and last.t ~= "let" and last.t ~= "assign" and last.t ~= "return" then
      out[#out + 1] = format('["return",%d,[]]', last.pos) -- some value of what the last statement holds
    end
    return '["block",[' .. concat(out, ",") .. "]]"
  end

  local function closure(expr)
    local body = expr.body
    local statements = body.t == "block" and body.body or { body }
    return format('["function",%d,%s,%s]', expr.pos, list(expr.params, quoted), function_body(statements))
  end

  local VALUES = {
    literal = literal, chain = chain, logic = logic, call = call, closure = closure,
    variable = function(expr) return named(expr, expr.stop) end,
    this = function(expr) return format('["name",%d,"this"]', expr.pos) end,
    interpolated = function(expr)
      local parts = {}
      for at = 1, #expr.items do
        local item = expr.items[at]
        if item.t == "block_expr" then
          parts[#parts + 1] = block(item.block)
        elseif item.t == "literal" then
          parts[#parts + 1] = literal(item)
        end
      end
      return other(expr.pos, concat(parts, ","), "text")
    end,
    array = function(expr)
      local function entry(item) return "[null," .. value(item) .. "]" end
      return format('["record",%d,%s,true,true,%d]', expr.pos, list(expr.items, entry), expr.stop)
    end,
    map = function(expr)
      local entries = {}
      for at = 1, #expr.items do entries[at] = "[" .. quoted(expr.names[at]) .. "," .. value(expr.items[at]) .. "]" end
      return format('["record",%d,[%s],true,false,%d]', expr.pos, concat(entries, ","), expr.stop)
    end,
    unary = function(expr) return other(expr.pos, value(expr.operand), expr.op == "!" and "not" or expr.op) end,
    binary = function(expr) return operation(expr.pos, expr.op, value(expr.left), value(expr.right)) end,
    range = function(expr) return other(expr.pos, range(expr), "range") end,
    block_expr = function(expr) return other(expr.pos, block(expr.block)) end,
  }

  function value(expr) return VALUES[expr.t](expr) end

  -- Statements

  function block(node) return '["block",' .. list(node.body, statement) .. "]" end

  local function evaluate(pos, parts) return format('["evaluate",%d,%s]', pos, other(pos, parts)) end

  local function assign(stmt)
    local target, given = stmt.target, value(stmt.value)
    local written = value(target)
    if stmt.op ~= "" then given = operation(stmt.pos, stmt.op, written, given) end
    local step = target.t == "chain" and target.steps[#target.steps]
    local key = step and step.args[1]
    if target.t == "variable" then
      count(assigned, target.name)
    elseif step and (step.kind == "property" or key.t == "literal" and key.kind == "str") then
      fields[key and key.value or step.name] = true
    elseif step and key.t ~= "literal" then
      count(filled, root_of(target))
    end
    return format('["assign",%d,[%s],[%s]]', start_of(target), written, given)
  end

  local function optional(expr) return expr and value(expr) or "" end

  local function jump(stmt) return evaluate(stmt.pos, optional(stmt.value)) end

  -- Modules bring names that are not known here.
  local function unfollowed(stmt)
    has_modules = true
    return evaluate(stmt.pos, "")
  end

  local STATEMENTS = {
    let = function(stmt)
      return format('["declare",%d,[%s],[%s]]', stmt.pos, quoted(stmt.name), optional(stmt.value))
    end,
    assign = assign,
    expr = function(stmt) return format('["evaluate",%d,%s]', stmt.expr.pos, value(stmt.expr)) end,
    block = function(stmt) return block(stmt) end,
    ["if"] = function(stmt)
      local branches = "[" .. value(stmt.condition) .. "," .. block(stmt.then_) .. "]"
      if stmt.other then branches = branches .. ",[null," .. block(stmt.other) .. "]" end
      return format('["branches",%d,[%s]]', stmt.pos, branches)
    end,
    switch = function(stmt)
      local parts = { value(stmt.value) }
      for at = 1, #stmt.cases do
        local case = stmt.cases[at]
        if case.guard then parts[#parts + 1] = value(case.guard) end
        parts[#parts + 1] = block(case.body.block)
      end
      return evaluate(stmt.pos, concat(parts, ","))
    end,
    ["while"] = function(stmt)
      local test = stmt.condition and value(stmt.condition) or "null"
      return format('["loop",%d,%s,%s]', stmt.pos, test, block(stmt.body))
    end,
    ["do"] = function(stmt)
      return evaluate(stmt.pos, format('["loop",%d,null,%s],%s', stmt.pos, block(stmt.body), value(stmt.condition)))
    end,
    ["for"] = function(stmt)
      local name = quoted(stmt.name)
      if stmt.items.t == "range" and not stmt.counter then
        return format('["count",%d,%s,[%s],%s]', stmt.pos, name, range(stmt.items), block(stmt.body))
      end
      if stmt.counter then name = name .. "," .. quoted(stmt.counter) end
      return format('["each",%d,[%s],[%s],%s]', stmt.pos, name, value(stmt.items), block(stmt.body))
    end,
    ["break"] = jump, throw = jump,
    ["return"] = function(stmt) return format('["return",%d,[%s]]', stmt.pos, optional(stmt.value)) end,
    import = unfollowed, export = unfollowed,
    try = function(stmt)
      local handler = stmt.handler.body
      local caught = format('["declare",%d,[%s],[]]', stmt.pos, stmt.name and quoted(stmt.name) or "")
      for at = 1, #handler do caught = caught .. "," .. statement(handler[at]) end
      return evaluate(stmt.pos, format('["guarded",%d,%s],["block",[%s]]', stmt.pos, block(stmt.body), caught))
    end,
  }

  function statement(stmt) return STATEMENTS[stmt.t](stmt) end

  local function define(fn)
    count(assigned, fn.name)
    local body = format('["function",%d,%s,%s]', fn.pos, list(fn.params, quoted), function_body(fn.body.body))
    return format('["define",%d,["name",%d,%s],%s,false]', fn.pos, fn.pos, quoted(fn.name), body)
  end

  -- The statements and the functions, in the order of the text.
  local function script_body(script)
    local out, functions, done = {}, script.functions, 0
    for at = 1, #script.body do
      local stmt = script.body[at]
      while done < #functions and functions[done + 1].pos < pos_of(stmt) do
        done = done + 1
        out[#out + 1] = define(functions[done])
      end
      out[#out + 1] = statement(stmt)
    end
    for at = done + 1, #functions do out[#out + 1] = define(functions[at]) end
    return '["block",[' .. concat(out, ",") .. "]]"
  end

  local function keys(names)
    local out = {}
    for name in next, names do out[#out + 1] = quoted(name) end
    return "[" .. concat(out, ",") .. "]"
  end

  local function counts(names)
    local out = {}
    for name, number in next, names do out[#out + 1] = format("%s:%d", quoted(name), number) end
    return "{" .. concat(out, ",") .. "}"
  end

  -- The outline of a script; nil of one that is too long to follow, or has modules. Ends in C.raise where the text is no script.
  function C.outline(source)
    local script = C.parse(source, C.LIMITS)
    if script.words > MOST_WORDS then return nil end
    assigned, fields, filled, has_modules = {}, {}, {}, false
    local body = script_body(script)
    if has_modules then return nil end
    local defines = {}
    for at = 1, #script.body do
      local stmt = script.body[at]
      if stmt.t == "let" then defines[stmt.name] = true end
    end
    for name in next, assigned do defines[name] = true end
    return format(
      '{"body":%s,"assigned":%s,"fields":%s,"defines":%s,"filled":%s}',
      body, counts(assigned), keys(fields), keys(defines), counts(filled)
    )
  end
end
