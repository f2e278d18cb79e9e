-- The parser of operands: names, literals, arrays, maps, text with values in it, closures.
--
-- Parsing functions take the state, the nesting level and the position for the error of too much nesting.
return function(C, lib)
  local RESERVED, is_identifier = C.RESERVED, C.is_identifier
  local take, accept, expect, deeper = C.take, C.accept, C.expect, C.deeper
  local fail, fail_taken, missing, token_text = C.fail, C.fail_taken, C.missing, C.token_text
  local format, advance = lib.string.format, C.advance
  local MOST_PARAMETERS = 50

  local function reserved_text(value)
    return "'" .. value .. "' is a reserved " .. (is_identifier(value) and "keyword" or "symbol")
  end

  -- The token in sight has no place there.
  local function unexpected(P) fail(P, "Unexpected '" .. token_text(P.kind, P.value) .. "'", P.pos) end

  -- The name of a variable, and where it is.
  function C.variable_name(P)
    local kind, value, pos = P.kind, P.value, P.pos
    take(P)
    if kind == "name" then return value, pos end
    if kind == "reserved" and is_identifier(value) then fail_taken(P, reserved_text(value), pos) end
    fail_taken(P, kind == "error" and value or "Expecting name of a variable", pos)
  end

  local function name(P)
    local kind, value, pos = P.kind, P.value, P.pos
    take(P)
    if kind == "name" then return { t = "variable", name = value, pos = pos, stop = P.stop } end
    local following = P.kind
    if (following == "(" or following == "!" or following == "()") and (RESERVED[value] or "") ~= "" then
      return { t = "variable", name = value, pos = pos, stop = P.stop }
    end
    if value == "this" then
      if P.in_function then return { t = "this", pos = pos } end
      fail(P, "'this' can only be used in functions", pos)
    end
    fail(P, reserved_text(value), pos)
  end

  local function interpolated(P, level, pos)
    local start, kind, value, place = P.pos, P.kind, P.value, P.pos
    local items = {}
    take(P) -- the brace that opens the first interpolation
    while true do
      if value ~= "" then items[#items + 1] = { t = "literal", kind = "str", value = value, pos = place } end
      if kind ~= "interpolated" then break end
      local block = C.parse_block(P, level, pos, true)
      if block.body[1] or not P.expression_only then
        items[#items + 1] = { t = "block_expr", block = block, pos = block.pos }
      end
      kind, value, place = C.text_after_interpolation(P)
      if kind == "error" then fail_taken(P, value, place) end
      advance(P)
    end
    if not items[1] then return { t = "literal", kind = "str", value = "", pos = start } end
    return { t = "interpolated", items = items, pos = start }
  end

  local function array(P, level)
    local start, items, most = P.pos, {}, P.limits.max_array
    take(P)
    while true do
      if most and #items >= most then
        fail(P, format("Size of array literal exceeds the maximum limit (%d)", most), P.pos)
      end
      if accept(P, "]") then break end
      if P.kind == "end" then missing(P, "]", "to end this array literal") end
      items[#items + 1] = C.parse_expression(P, deeper(P, level, start))
      if P.kind == "end" then missing(P, "]", "to end this array literal") end
      if P.kind ~= "]" and not accept(P, ",") then missing(P, ",", "to separate the items of this array literal") end
    end
    return { t = "array", items = items, pos = start, stop = P.stop }
  end

  local TO_END = "to end this object map literal"

  local function map_key(P, known, count)
    local kind, value, pos = P.kind, P.value, P.pos
    take(P)
    if kind == "name" or kind == "string" then
      if known[value] then fail_taken(P, "Duplicated property for object map literal: " .. value, pos) end
      return value
    end
    if kind == "reserved" and is_identifier(value) then fail_taken(P, reserved_text(value), pos) end
    if kind == "error" then fail_taken(P, value, pos) end
    if kind == "end" or count == 0 and kind ~= "interpolated" then fail_taken(P, "Expecting '}' " .. TO_END, pos) end
    fail_taken(P, "Expecting name of a property", pos)
  end

  local function map(P, level)
    local start, names, items, known, most = P.pos, {}, {}, {}, P.limits.max_map
    take(P)
    while not accept(P, "}") do
      local key = map_key(P, known, #items)
      expect(P, ":", "to follow the property '" .. key .. "' in this object map literal")
      if most and #items >= most then
        fail(P, format("Number of properties in object map literal exceeds the maximum limit (%d)", most), P.pos)
      end
      local item = C.parse_expression(P, deeper(P, level, start))
      known[key] = true
      names[#names + 1], items[#items + 1] = key, item
      if P.kind == "name" then missing(P, ",", "to separate the items of this object map literal") end
      if P.kind ~= "}" and not accept(P, ",") then missing(P, "}", TO_END) end
    end
    return { t = "map", names = names, items = items, pos = start, stop = P.stop }
  end

  -- The parameters of a function, up to the token that closes them.
  local function parameters(P, closing, separated, closed, function_name)
    local params, known = {}, {}
    while true do
      local kind, value, pos = P.kind, P.value, P.pos
      take(P)
      if kind == closing then break end
      if kind == "reserved" then fail_taken(P, reserved_text(value), pos) end
      if C.KEYWORDS[kind] and kind ~= "switch" then fail_taken(P, "Expecting name of a variable", pos) end
      if kind ~= "name" then
        local message = "Expecting '" .. closing .. "' to close the parameters list of " .. closed
        fail_taken(P, kind == "error" and value or message, pos)
      end
      if known[value] then fail_taken(P, "Duplicated parameter " .. value .. " for function " .. function_name, pos) end
      known[value] = true
      params[#params + 1] = value
      if #params > MOST_PARAMETERS then
        fail_taken(P, format("Too many parameters: a function takes at most %d", MOST_PARAMETERS), pos)
      end
      C.push_name(P.scope, value, false)
      kind, value, pos = P.kind, P.value, P.pos
      take(P)
      if kind == closing then break end
      if kind ~= "," then
        local message = "Expecting ',' to separate the parameters of " .. separated
        fail_taken(P, kind == "error" and value or message, pos)
      end
    end
    return params
  end
  C.parse_parameters = parameters

  local function closure(P, level)
    local pos = P.pos
    C.count_function(P, pos)
    local scope, no_pipe = P.scope, P.no_pipe
    local at_top, breakable, in_function = P.at_top, P.breakable, P.in_function
    P.scope, P.no_pipe = C.new_scope(), false
    P.at_top, P.breakable, P.in_function = false, false, true
    local params = {}
    local opening = P.kind
    take(P)
    if opening == "|" and not accept(P, "|") then
      params = parameters(P, "|", "anonymous function", "anonymous function or closure", "")
    end
    local body = C.parse_statement(P, deeper(P, level, pos))
    P.scope, P.no_pipe = scope, no_pipe
    P.at_top, P.breakable, P.in_function = at_top, breakable, in_function
    P.closures = P.closures + 1
    return { t = "closure", params = params, body = body, pos = pos }
  end

  local function literal(kind)
    return function(P)
      local value, pos = P.value, P.pos
      take(P)
      return { t = "literal", kind = kind, value = value, pos = pos, stop = P.stop }
    end
  end

  local function constant(kind, value)
    return function(P)
      local pos = P.pos
      take(P)
      return { t = "literal", kind = kind, value = value, pos = pos, stop = P.stop }
    end
  end

  local function open_range(P) return { t = "literal", kind = "int", value = 0, pos = P.pos } end

  local function parenthesis(P, level, pos)
    take(P)
    local inner = C.parse_expression(P, deeper(P, level, pos))
    expect(P, ")", "for a matching ( in this expression")
    return inner
  end

  local function block(P, level, pos)
    if P.expression_only then unexpected(P) end
    local inner = C.parse_block(P, deeper(P, level, pos), pos)
    return { t = "block_expr", block = inner, pos = inner.pos }
  end

  local function compound(P, level, pos)
    if P.expression_only and P.kind ~= "if" and P.kind ~= "switch" then unexpected(P) end
    local inner = C.as_block(C.parse_compound(P, deeper(P, level, pos), pos))
    return { t = "block_expr", block = inner, pos = inner.pos }
  end

  -- A parser for each kind of token that an operand starts with.
  local OPERANDS = {
    name = name, reserved = name,
    int = literal("int"), float = literal("float"), string = literal("str"), char = literal("char"),
    ["()"] = constant("unit"), ["true"] = constant("bool", true), ["false"] = constant("bool", false),
    [".."] = open_range, ["..="] = open_range,
    interpolated = function(P, level, pos) return interpolated(P, deeper(P, level, pos), pos) end,
    ["("] = parenthesis,
    ["["] = function(P, level, pos) return array(P, deeper(P, level, pos)) end,
    ["#{"] = function(P, level, pos) return map(P, deeper(P, level, pos)) end,
    ["{"] = block,
    ["if"] = compound, ["switch"] = compound, ["while"] = compound, ["loop"] = compound, ["do"] = compound, ["for"] = compound,
    ["|"] = closure, ["||"] = closure,
    error = function(P)
      local message, pos = P.value, P.pos
      take(P)
      fail_taken(P, message, pos)
    end,
    ["end"] = function(P) fail(P, "Script is incomplete", P.pos) end,
  }
  C.OPERANDS = OPERANDS

  -- An operand with what follows it.
  function C.parse_primary(P, level)
    local pos = P.pos
    local parse = OPERANDS[P.kind] or unexpected
    local root = parse(P, level, pos)
    if P.no_pipe and P.kind == "|" then return root end
    return C.parse_postfix(P, level, root)
  end

  C.unexpected, C.reserved_text = unexpected, reserved_text
end
