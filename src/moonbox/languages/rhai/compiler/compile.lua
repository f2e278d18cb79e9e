-- The compiler: Rhai text in, a Lua chunk out.
--
-- It runs where scripts run, under the same clock and memory. It works through the text a bounded number of times, whatever
-- the text; nesting is bounded by the parser, and what functions in the scope of their callers add by the folder.
return function(C, lib)
  local utf8_len, next = lib.utf8.len, lib.next
  local MAX_SOURCE = 250000

  local function checked(source)
    local size = utf8_len(source)
    if not size then C.raise("the script is not valid UTF-8") end
    if size > MAX_SOURCE then C.raise("the script is longer than 250,000 characters") end
    return source
  end

  local function with_defaults(limits)
    if not limits then return C.LIMITS end
    local all = {}
    for name, value in next, C.LIMITS do all[name] = value end
    for name, value in next, limits do all[name] = value end
    return all
  end

  -- The Lua text of a script, the positions that its chunk wants, and its variables; ends in C.raise(message, line, column, hint) where the
  -- text is no script.
  -- `limits` are expr_depth, function_expr_depth, max_string, max_array, max_map, max_functions, max_variables.
  function C.compile(source, limits)
    limits = with_defaults(limits)
    local script = C.parse(checked(source), limits)
    C.optimize(script)
    return C.write_chunk(script, limits)
  end

  -- The same without a result, for a text that is to be a script, or a single expression.
  function C.check(source, limits, single)
    local parse = single and C.parse_single or C.parse
    parse(checked(source), with_defaults(limits))
  end
end
