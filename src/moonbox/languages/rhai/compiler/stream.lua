-- The state of a parser: the token in sight, errors, nesting levels, the variables in scope.
--
-- What holds at one place of the text (whether it is at the top, in a function, in a loop) are fields of the state that
-- those who change them put back. An error ends the compilation for good, so nothing needs to be undone then.
return function(C, lib)
  local format, find, sub = lib.string.format, lib.string.find, lib.string.sub
  local tonumber, tostring, number_type = lib.tonumber, lib.tostring, lib.math.type
  local advance = C.advance
  local TOO_DEEP = "Expression exceeds maximum complexity"

  C.LIMITS = { expr_depth = 64, function_expr_depth = 32 }

  function C.new_parser(text, limits)
    local P = {
      text = text, limits = limits,
      at = 1, line = 1, base = 1 << 16, last = (2 << 16) - 1, unary = true, -- where the lexer stands
      kind = "end", pos = 0, value = "", -- the token in sight
      stop = 0, -- the position behind the one before it
      taken = 0, kinds = { "", "", "", "" }, values = { "", "", "", "" }, -- the last four before it, in turn
      max_level = limits.expr_depth,
      at_top = true, in_function = false, breakable = false, expression_only = false,
      no_pipe = false, -- within the values of a switch case, | separates
      case_values = 0, -- how many lists of such values this is within
      functions = {}, function_keys = {}, closures = 0, runs_in_scope = false,
      scope = nil,
    }
    P.scope = C.new_scope()
    advance(P)
    return P
  end

  -- Errors

  -- A number as messages show it.
  local function number_text(value)
    if number_type(value) == "integer" then return tostring(value) end
    local text = format("%.15g", value)
    if tonumber(text) ~= value then text = format("%.17g", value) end
    return find(text, "^-?%d+$") and text .. ".0" or text
  end

  local VALUED = C.words("char name reserved error")
  -- A token as messages show it.
  local function token_text(kind, value)
    if kind == "string" then return '"' .. value .. '"' end
    if kind == "interpolated" then return "string" end
    if kind == "end" then return "{EOF}" end
    if kind == "int" or kind == "float" then return number_text(value) end
    if VALUED[kind] then return value end
    if kind == "-u" or kind == "+u" then return sub(kind, 1, 1) end
    return kind
  end
  C.token_text = token_text

  -- Ends the compilation with a message at that place.
  local function fail_at(P, message, pos, hint)
    if P and P.case_values > 0 then message = "Expecting literal expression" end
    local line, column
    if pos ~= 0 then line, column = pos >> 16, pos & 0xFFFF end
    C.raise(message, line, column, hint)
  end
  C.fail_at = fail_at

  local function hint(P, message, with_token_in_sight)
    local near = {}
    for number = P.taken - 3, P.taken do
      local slot = (number & 3) + 1
      if P.kinds[slot] ~= "" then near[#near + 1] = token_text(P.kinds[slot], P.values[slot]) end
    end
    if with_token_in_sight then near[#near + 1] = token_text(P.kind, P.value) end
    return C.hint_for(message, near)
  end

  -- The same with a hint, where the tokens up to the one in sight suggest one.
  local function fail(P, message, pos) fail_at(P, message, pos, hint(P, message, true)) end
  C.fail = fail

  -- The same where the token last taken is to blame.
  local function fail_taken(P, message, pos) fail_at(P, message, pos, hint(P, message, false)) end
  C.fail_taken = fail_taken

  -- Another token than the one in sight should be there.
  function C.missing(P, kind, why)
    fail(P, P.kind == "error" and P.value or "Expecting '" .. kind .. "' " .. why, P.pos)
  end

  -- Tokens

  -- The token in sight is among those before from now on.
  local function remember(P)
    local taken = P.taken + 1
    P.taken = taken
    local slot = (taken & 3) + 1
    P.kinds[slot], P.values[slot] = P.kind, P.value
  end
  C.remember = remember

  -- Takes the token in sight.
  local function take(P)
    remember(P)
    P.stop = P.base + P.at
    advance(P)
  end
  C.take = take

  -- The same if it is of that kind.
  function C.accept(P, kind)
    if P.kind ~= kind then return false end
    take(P)
    return true
  end

  -- The same where it must be; returns its position.
  function C.expect(P, kind, why)
    local was, pos, value = P.kind, P.pos, P.value
    take(P)
    if was == kind then return pos end
    fail_taken(P, was == "error" and value or "Expecting '" .. kind .. "' " .. why, pos)
  end

  -- Levels: one deeper, or a failure at `pos` where that is too deep.
  function C.deeper(P, level, pos)
    if level >= P.max_level then fail_at(P, TOO_DEEP, pos) end
    return level + 1
  end
  C.TOO_DEEP = TOO_DEEP

  function C.count_function(P, pos)
    local most = P.limits.max_functions
    if most and #P.functions + P.closures >= most then
      fail(P, "Number of functions defined exceeds maximum limit", pos)
    end
  end

  -- Names that come into scope and go out of it again: the latest of a name is found at once, however many there are.

  function C.new_scope() return { size = 0, names = {}, values = {}, before = {}, latest = {}, frame = 0 } end

  local function push(scope, name, value)
    local at = scope.size + 1
    scope.size, scope.names[at], scope.values[at] = at, name, value
    scope.before[at] = scope.latest[name] or 0
    scope.latest[name] = at
  end
  C.push_name = push

  -- Forgets all but the first `size`.
  function C.cut_names(scope, size)
    for at = scope.size, size + 1, -1 do
      local before = scope.before[at]
      scope.latest[scope.names[at]] = before > 0 and before or nil
    end
    scope.size = size
  end

  -- The value of the latest of that name.
  function C.value_of_name(scope, name)
    local at = scope.latest[name]
    return at and scope.values[at]
  end

  -- A variable of the text, constant or not; false if it takes the place of one in the same block.
  function C.declare(scope, name, constant)
    local at = scope.latest[name]
    if at and at > scope.frame then
      scope.values[at] = constant
      return false
    end
    push(scope, name, constant)
    return true
  end
end
