-- The parser of statements, and with it of a whole script.
return function(C, lib)
  local take, accept, expect, deeper = C.take, C.accept, C.expect, C.deeper
  local fail, fail_taken, missing = C.fail, C.fail_taken, C.missing
  local variable_name, push_name, cut_names = C.variable_name, C.push_name, C.cut_names
  local start_of, as_block, is_literal = C.start_of, C.as_block, C.is_literal
  local parse_expression, must_be_boolean = C.parse_expression, C.must_be_boolean
  local format, number_type = lib.string.format, lib.math.type
  local ASSIGNMENTS, OPERANDS = C.ASSIGNMENTS, C.OPERANDS
  local SELF_TERMINATED = { ["if"] = true, switch = true, ["while"] = true, ["for"] = true, block = true, try = true }
  local parse_statement

  local function terminator(P, stmt, closing)
    if P.kind == closing or accept(P, ";") or SELF_TERMINATED[stmt.t] then return end
    missing(P, ";", "to terminate this statement")
  end

  -- A block. That of an interpolation leaves its closing brace in sight: the text after it is read in another mode.
  local function parse_block(P, level, pos, in_text)
    local start = expect(P, "{", "to start a statement block")
    level = deeper(P, level, pos)
    local body = {}
    if P.expression_only then
      body[1] = { t = "expr", expr = parse_expression(P, level) }
      if P.kind ~= "}" then expect(P, "{", "to start a statement block") end
    else
      local scope, at_top = P.scope, P.at_top
      local frame = scope.frame
      scope.frame, P.at_top = scope.size, false
      while P.kind ~= "}" do
        if P.kind == "end" then missing(P, "}", "to terminate this block") end
        local stmt = parse_statement(P, level)
        if stmt.t ~= "noop" then
          body[#body + 1] = stmt
          terminator(P, stmt, "}")
        end
      end
      cut_names(scope, scope.frame)
      scope.frame, P.at_top = frame, at_top
    end
    if in_text then
      C.remember(P)
    else
      take(P)
    end
    return { t = "block", body = body, pos = start }
  end
  C.parse_block = parse_block

  -- Branches and loops

  local function no_block(P)
    if P.kind == "{" then fail(P, "Expecting a boolean expression", P.pos) end
  end

  local function condition(P, level)
    no_block(P)
    local expr = must_be_boolean(P, parse_expression(P, level))
    if P.kind == "=" then fail(P, "Possibly a typo of '=='?", P.pos) end
    return expr
  end

  local function parse_if(P, level, pos)
    local start = P.pos
    take(P)
    level = deeper(P, level, pos)
    local test = condition(P, level)
    local then_, other = parse_block(P, level, start), nil
    if accept(P, "else") then
      other = P.kind == "if" and as_block(parse_if(P, level, start)) or parse_block(P, level, start)
    end
    return { t = "if", condition = test, then_ = then_, other = other, pos = start }
  end

  local function loop_body(P, level, pos)
    local breakable = P.breakable
    P.breakable = true
    local body = parse_block(P, level, pos)
    P.breakable = breakable
    return body
  end

  local function parse_while(P, level, pos)
    level = deeper(P, level, pos)
    local kind, start = P.kind, P.pos
    take(P)
    local test = kind == "while" and condition(P, level) or nil
    return { t = "while", condition = test, body = loop_body(P, level, start), pos = start }
  end

  local function parse_do(P, level, pos)
    local start = P.pos
    take(P)
    level = deeper(P, level, pos)
    local body = loop_body(P, level, start)
    local kind, place = P.kind, P.pos
    take(P)
    if kind ~= "while" and kind ~= "until" then fail_taken(P, "Expecting 'while' for the do statement", place) end
    return { t = "do", body = body, condition = condition(P, level), until_ = kind == "until", pos = start }
  end

  local function parse_for(P, level, pos)
    local start = P.pos
    take(P)
    level = deeper(P, level, pos)
    local pair = accept(P, "(")
    local name, name_pos = variable_name(P)
    local counter, counter_pos
    if pair then
      if not accept(P, ",") then fail(P, "Expecting ',' after the iteration variable name", P.pos) end
      counter, counter_pos = variable_name(P)
      if counter == name then fail_taken(P, "Duplicated variable name: " .. counter, counter_pos) end
      if not accept(P, ")") then fail(P, "Expecting ')' to close the iteration variable", P.pos) end
    end
    expect(P, "in", "after the iteration variable")
    no_block(P)
    local items = C.must_be_iterable(P, parse_expression(P, level))
    local scope = P.scope
    local before = scope.size
    if counter then push_name(scope, counter, false) end
    push_name(scope, name, false)
    local body = loop_body(P, level, start)
    cut_names(scope, before)
    return { t = "for", name = name, name_pos = name_pos, counter = counter, items = items, body = body, pos = start }
  end

  -- A range that no number is in.
  local function is_empty(range)
    local low, high = range.left.value, range.right.value
    if number_type(high) ~= "integer" then return false end
    low = number_type(low) == "integer" and low or 0
    if range.inclusive then return low > high end
    return low >= high
  end

  local function case_values(P, level)
    local values, no_pipe = {}, P.no_pipe
    repeat
      P.no_pipe, P.case_values = true, P.case_values + 1
      values[#values + 1] = parse_expression(P, level)
      P.no_pipe, P.case_values = no_pipe, P.case_values - 1
    until not accept(P, "|")
    return values
  end

  local function check_values(P, values, ranges)
    for at = 1, #values do
      local value = values[at]
      if not is_literal(value) then fail(P, "Expecting a literal expression", start_of(value)) end
      if value.t == "range" then
        ranges = ranges or not is_empty(value)
      elseif ranges and value.t == "literal" and (value.kind == "int" or value.kind == "float") then
        fail(P, "Numeric switch case cannot follow a range case", start_of(value))
      end
    end
    return ranges
  end

  local function case_body(P, level)
    if P.expression_only then return { t = "expr", expr = parse_expression(P, level) } end
    local stmt = parse_statement(P, level)
    return stmt.t == "noop" and { t = "block", body = {}, pos = stmt.pos } or stmt
  end

  local function parse_switch(P, level, pos)
    local start = P.pos
    take(P)
    level = deeper(P, level, pos)
    local value = parse_expression(P, level)
    expect(P, "{", "to start a switch block")
    local cases, default, ranges = {}, nil, false
    while not accept(P, "}") do
      if P.kind == "end" then missing(P, "}", "to end this switch block") end
      if default then fail(P, "Default switch case must be the last", default) end
      local values, guard = {}, nil
      if P.kind == "_" then
        default = P.pos
        take(P)
        if P.kind == "if" then fail(P, "This switch case cannot have a condition", P.pos) end
      else
        values = case_values(P, level)
        if accept(P, "if") then guard = condition(P, level) end
      end
      expect(P, "=>", "in this switch case")
      local stmt = case_body(P, level)
      ranges = check_values(P, values, ranges)
      local body = as_block(stmt)
      cases[#cases + 1] = { values = values, guard = guard, body = { t = "block_expr", block = body, pos = body.pos } }
      if P.kind == "end" then missing(P, ")", "to end this switch block") end
      local needs_comma = P.kind == "error" or not SELF_TERMINATED[stmt.t]
      if P.kind ~= "}" and not accept(P, ",") and needs_comma then
        missing(P, ",", "to separate the items in this switch block")
      end
    end
    return { t = "switch", value = value, cases = cases, pos = start }
  end

  local COMPOUND = {
    ["if"] = parse_if, switch = parse_switch, ["while"] = parse_while, loop = parse_while, ["do"] = parse_do,
    ["for"] = parse_for,
  }
  function C.parse_compound(P, level, pos) return COMPOUND[P.kind](P, level, pos) end

  -- Simple statements

  local function parse_let(P, level, pos)
    level = deeper(P, level, pos)
    local constant, start = P.kind == "const", P.pos
    take(P)
    local name, name_pos = variable_name(P)
    local value
    if accept(P, "=") then value = parse_expression(P, deeper(P, level, start)) end
    local fresh = C.declare(P.scope, name, constant)
    return { t = "let", name = name, name_pos = name_pos, value = value, const = constant, pos = start, fresh = fresh }
  end

  local SIGNS = C.words("- -u + +u !")

  -- An expression, or nothing where none can start.
  local function optional_value(P, level, pos)
    local kind = P.kind
    if kind == "end" or kind == "|" and P.no_pipe or not (OPERANDS[kind] or SIGNS[kind]) then return nil end
    return parse_expression(P, deeper(P, level, pos))
  end

  local function parse_jump(P, level, pos)
    local kind, start = P.kind, P.pos
    if (kind == "break" or kind == "continue") and not P.breakable then
      fail(P, "Break statement should only be used inside a loop", start)
    end
    take(P)
    if kind == "continue" then return { t = "break", is_continue = true, pos = start } end
    return { t = kind, value = optional_value(P, level, pos), pos = start }
  end

  local function parse_import(P, level, pos)
    level = deeper(P, level, pos)
    local start = P.pos
    take(P)
    level = deeper(P, level, pos)
    local path = parse_expression(P, level)
    if accept(P, "as") then variable_name(P) end
    return { t = "import", path = path, pos = start }
  end

  local function parse_export(P, level, pos)
    local start = P.pos
    if not P.at_top then fail(P, "Export statement can only appear at global level", start) end
    level = deeper(P, level, pos)
    take(P)
    if P.kind == "let" or P.kind == "const" then return parse_let(P, level, pos) end
    variable_name(P)
    if accept(P, "as") then variable_name(P) end
    return { t = "export", pos = start }
  end

  local function parse_try(P, level, pos)
    level = deeper(P, level, pos)
    local start = P.pos
    take(P)
    level = deeper(P, level, pos)
    local body = parse_block(P, level, start)
    if not accept(P, "catch") then fail(P, "Expecting 'catch' for the 'try' statement", P.pos) end
    local name, name_pos
    if accept(P, "(") then
      name, name_pos = variable_name(P)
      if not accept(P, ")") then fail(P, "Expecting ')' to enclose the catch variable", P.pos) end
      push_name(P.scope, name, false)
    end
    local handler = parse_block(P, level, start)
    if name then cut_names(P.scope, P.scope.size - 1) end
    return { t = "try", body = body, name = name, name_pos = name_pos, handler = handler, pos = start }
  end

  local function check_target(P, target, op, op_pos)
    local t = target.t
    if t == "this" then return end
    if t == "variable" then
      if not target.path and C.value_of_name(P.scope, target.name) then
        fail(P, "Cannot assign to constant " .. target.name, target.pos)
      end
      return
    end
    if t == "chain" then
      local steps, root = target.steps, target.root
      for at = 1, #steps do
        if steps[at].kind == "method" then fail(P, "Expression cannot be assigned to", steps[at].pos) end
      end
      if root.t == "variable" or root.t == "this" then return end
      fail(P, "Expression cannot be assigned to", root.pos)
    end
    if (t == "literal" or t == "array" or t == "map") and is_literal(target) then
      fail(P, "Cannot assign to a constant value", start_of(target))
    end
    if t == "logic" and op == "=" then fail(P, "Possibly a typo of '=='?", op_pos) end
    fail(P, "Expression cannot be assigned to", target.pos)
  end

  local function parse_expression_statement(P, level)
    local expr = parse_expression(P, level)
    local kind, pos = P.kind, P.pos
    local op = ASSIGNMENTS[kind]
    if not op then return { t = "expr", expr = expr } end
    take(P)
    local value = parse_expression(P, level)
    check_target(P, expr, kind, pos)
    return { t = "assign", target = expr, op = op, value = value, pos = pos }
  end

  -- Functions

  local TYPES = { int = "i64", float = "f64" }

  local function parse_function(P, pos)
    local level = deeper(P, 0, pos)
    local kind, name, place = P.kind, P.value, P.pos
    local this_type
    take(P)
    if kind == "string" or kind == "name" then
      if accept(P, ".") then
        this_type = TYPES[name] or name
        kind, name, place = P.kind, P.value, P.pos
        take(P)
      elseif kind == "string" then
        fail(P, "Expecting '.' after the type name for 'this'", P.pos)
      end
    end
    if kind == "reserved" then fail_taken(P, C.reserved_text(name), place) end
    if kind ~= "name" then fail_taken(P, "Expecting function name in function declaration", place) end
    local opening = P.kind
    if opening ~= "(" and opening ~= "()" then fail(P, "Expecting parameters for function " .. name, P.pos) end
    take(P)
    local params = {}
    if opening == "(" and not accept(P, ")") then
      params = C.parse_parameters(P, ")", "function '" .. name .. "'", "function '" .. name .. "'", name)
    end
    if P.kind ~= "{" then fail(P, "Expecting body statement block for function " .. name, P.pos) end
    local body = parse_block(P, level, pos)
    return { t = "function", name = name, params = params, body = body, this_type = this_type, pos = pos }
  end

  local function parse_definition(P)
    local first, pos = P.pos, P.pos
    local private = P.kind == "private"
    take(P)
    if private then
      local kind = P.kind
      pos = P.pos
      take(P)
      if kind ~= "fn" then fail_taken(P, "Expecting 'fn' following 'private'", pos) end
    end
    if not P.at_top then
      fail_taken(P, "Function definitions must be at global level and cannot be inside a block or another function", first)
    end
    C.count_function(P, pos)
    local scope, max_level, breakable, in_function = P.scope, P.max_level, P.breakable, P.in_function
    local no_pipe = P.no_pipe
    P.scope, P.max_level, P.breakable, P.in_function = C.new_scope(), P.limits.function_expr_depth, false, true
    P.at_top = false
    local fn = parse_function(P, pos)
    P.scope, P.max_level, P.breakable, P.in_function = scope, max_level, breakable, in_function
    P.at_top, P.no_pipe = true, no_pipe
    local count = #fn.params
    local key = fn.name .. "\0" .. count .. (fn.this_type and "\0" .. fn.this_type or "")
    if P.function_keys[key] then
      local words = count == 0 and "no parameters" or count == 1 and "1 parameter" or format("%d parameters", count)
      fail_taken(P, "Function " .. fn.name .. " with " .. words .. " already exists", pos)
    end
    P.function_keys[key] = true
    P.functions[#P.functions + 1] = fn
    return { t = "noop", pos = pos }
  end

  local function nothing(P)
    local pos = P.pos
    if P.kind == ";" then take(P) end
    return { t = "noop", pos = pos }
  end

  -- A parser for each kind of token that a statement starts with, but for expressions and what is one level deeper.
  local SIMPLE = {
    ["end"] = nothing, [";"] = nothing,
    fn = parse_definition, private = parse_definition,
    let = parse_let, const = parse_let,
    ["break"] = parse_jump, continue = parse_jump, ["return"] = parse_jump, throw = parse_jump,
    try = parse_try, import = parse_import, export = parse_export,
  }

  function parse_statement(P, level)
    local kind, pos = P.kind, P.pos
    local simple = SIMPLE[kind]
    if simple then return simple(P, level, pos) end
    level = deeper(P, level, pos)
    if kind == "{" then return parse_block(P, level, pos) end
    local compound = COMPOUND[kind]
    if compound then return compound(P, level, pos) end
    return parse_expression_statement(P, level)
  end
  C.parse_statement = parse_statement

  -- The syntax tree of a script: its statements and the functions it defines.
  function C.parse(text, limits)
    local P = C.new_parser(text, limits)
    local body = {}
    while P.kind ~= "end" do
      local stmt = parse_statement(P, 0)
      if stmt.t ~= "noop" then
        body[#body + 1] = stmt
        terminator(P, stmt, "end")
      end
    end
    return { body = body, functions = P.functions, runs_in_scope = P.runs_in_scope, words = P.taken }
  end

  -- The same for a text that must be a single expression.
  function C.parse_single(text, limits)
    local P = C.new_parser(text, limits)
    P.at_top, P.expression_only = false, true
    local expr = parse_expression(P, 0)
    if P.kind == "error" then fail(P, P.value, P.pos) end
    if P.kind ~= "end" then C.unexpected(P) end
    return { body = { { t = "expr", expr = expr } }, functions = P.functions, runs_in_scope = false }
  end
end
