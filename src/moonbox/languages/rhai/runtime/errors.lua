-- Errors: what is raised, what a script catches, what the host is told.
return function(R, lib, host)
  local error, type, next, setmetatable, select = lib.error, lib.type, lib.next, lib.setmetatable, lib.select
  local format, find, match, concat = lib.string.format, lib.string.find, lib.string.match, lib.table.concat
  local tonumber, tostring, getmetatable = lib.tonumber, lib.tostring, lib.debug.getmetatable
  local U = R.U

  local PROBLEM = { __name = "rhai error" }
  PROBLEM.__tostring = function(problem) return problem.text or problem.message end
  R.PROBLEM = PROBLEM

  local function is_problem(problem) return type(problem) == "table" and getmetatable(problem) == PROBLEM end
  R.is_problem = is_problem

  -- Raises an error of the language. `pos` is a position as a number; `fields` go into what `catch` sees, and
  -- `near` is a position that the reference leaves out of the message.
  local function raise(name, message, pos, fields, hint, near)
    error(setmetatable({
      kind = "runtime", error = name, message = message, pos = pos ~= 0 and pos or nil,
      fields = fields, hint = hint, near = near,
    }, PROBLEM), 0)
  end
  R.raise = raise

  -- Raises the end of a run: no script catches it.
  local function stop(limit, name, message, pos)
    error(setmetatable({
      kind = "limit", limit = limit, error = name, message = message, pos = pos ~= 0 and pos or nil,
    }, PROBLEM), 0)
  end

  function R.too_large(what, pos)
    local message = what == "string" and "Length of string" or what == "map" and "Size of object map" or "Size of array/BLOB"
    stop(what == "string" and "string" or "array", "ErrorDataTooLarge", message .. " too large", pos)
  end

  local function line_and_column(pos)
    if pos then return pos >> 16, pos & 0xFFFF end
  end

  local function place(line, position)
    return line and line > 0 and format(" (line %d, position %d)", line, position) or ""
  end

  -- Ends a compilation: what is there is no script.
  function R.syntax_error(message, line, column, hint)
    local text = "Syntax error: " .. message .. place(line, column)
    error(setmetatable({
      kind = "syntax", error = "ErrorParsing", message = message, text = text, line = line, position = column, hint = hint, trace = {},
    }, PROBLEM), 0)
  end

  -- More operations than allowed: the list of positions tells which one it was.
  function R.over(K, count, places)
    local pos = places[K[1] + count + 1] or 0
    K[1] = 0
    stop("operations", "ErrorTooManyOperations", "Too many operations", pos)
  end

  local function decode(site)
    if type(site) == "string" then
      local name, line, column = match(site, "^(.*)@(%d+):(%d+)$")
      return name, tonumber(line), tonumber(column)
    end
    return nil, site >> 16, site & 0xFFFF
  end

  -- The calls under way at level `from` and above, the innermost first.
  local function frames(K, from)
    local found = {}
    local level = from
    while K[level] and K[level] ~= 0 do
      local name, line, column = decode(K[level])
      found[#found + 1] = { fn = name or K[-level] or "?", line = line, position = column }
      level = level + 1
    end
    for i = 1, #found // 2 do
      found[i], found[#found + 1 - i] = found[#found + 1 - i], found[i]
    end
    return found
  end

  function R.deep(K, level)
    local _, line, column = decode(K[level - 1] ~= 0 and K[level - 1] or 0)
    stop("depth", "ErrorStackOverflow", "Stack overflow", line << 16 | column)
  end

  function R.too_many_variables(pos)
    stop("depth", "ErrorTooManyVariables", "Too many variables defined", pos)
  end

  local function is_closure(name) return find(name, "^anon%$") ~= nil end

  local function describe(problem, trace)
    local parts = { problem.message .. place(line_and_column(problem.pos)) }
    for _, frame in next, trace do
      local what = is_closure(frame.fn) and "\nin closure call" or "\nin call to function '" .. frame.fn .. "'"
      parts[#parts + 1] = what .. place(frame.line, frame.position)
    end
    return concat(parts)
  end

  local function joined(first, second)
    if not first then return second end
    local all = {}
    for _, frame in next, first do all[#all + 1] = frame end
    for _, frame in next, second do all[#all + 1] = frame end
    return all
  end

  -- The calls that an error has passed, with those of a context that ends here.
  function R.frames_of(K, level, problem) return joined(problem.frames, frames(K, level)) end

  -- What Lua itself raised, as an error that no script catches. Memory is the host's to report.
  local function foreign(raised)
    local text = type(raised) == "string" and raised or tostring(raised)
    if find(text, "stack overflow", 1, true) then
      return setmetatable({ kind = "limit", limit = "depth", error = "ErrorStackOverflow", message = "Stack overflow" }, PROBLEM)
    end
    return setmetatable({ kind = "internal", error = "ErrorSystem", message = "internal error: " .. text }, PROBLEM)
  end

  local function is_foreign_stop(raised)
    if host.is_stop and host.is_stop(raised) then return true end
    return type(raised) == "string" and find(raised, "not enough memory", 1, true) ~= nil
  end

  -- An error as the host gets it: with the position, the calls that led there, and the whole text.
  function R.finished(K, raised)
    if is_foreign_stop(raised) then return raised end
    local problem = is_problem(raised) and raised or foreign(raised)
    local trace = joined(problem.frames, frames(K, 2))
    if problem.kind == "limit" then
      local outermost = trace[#trace]
      if outermost then problem.pos = outermost.line << 16 | outermost.position end
      trace = {}
    end
    problem.trace = trace
    problem.text = describe(problem, trace)
    if problem.pos then problem.line, problem.position = line_and_column(problem.pos) end
    problem.near_line, problem.near_position = line_and_column(problem.pos or problem.near)
    return problem
  end

  -- Whether an error passes through `try`, and is raised again if so.
  local function pass(raised)
    if is_foreign_stop(raised) then error(raised, 0) end
    local problem = is_problem(raised) and raised or foreign(raised)
    if problem.kind ~= "runtime" and problem.kind ~= "tool" then error(problem, 0) end
    return problem
  end
  R.pass = pass

  local function entries(fields)
    local map, count = {}, 0
    for key, value in next, fields do
      map[key] = value
      count = count + 1
    end
    map[true] = count
    return R.map(map)
  end
  R.entries = entries

  -- What `catch (e)` gets, and the error itself for a `throw` without a value.
  function R.catch(K, level, raised, wanted)
    local problem = pass(raised)
    local here = frames(K, level)
    local n = level
    while K[n] and K[n] ~= 0 do
      K[n] = 0
      n = n + 1
    end
    problem.frames = joined(problem.frames, here)
    if not wanted then return U, problem end
    if problem.value ~= nil then return R.copy(problem.value), problem end
    local trace = problem.frames
    local outermost = trace[#trace]
    local fields = {}
    for key, value in next, problem.fields or {} do fields[key] = value end
    local line, column
    if outermost then
      line, column = outermost.line, outermost.position
      fields = { ["function"] = outermost.fn, source = "", error = "ErrorInFunctionCall" }
      outermost.line = 0
      fields.message = describe(problem, trace)
      outermost.line = line
    else
      line, column = line_and_column(problem.pos)
      fields.message, fields.error = problem.message, problem.error
    end
    if line and line > 0 then fields.line, fields.position = line, column end
    return entries(fields), problem
  end

  function R.throw(value, pos, caught)
    if value == U and caught then
      local outermost = caught.frames and caught.frames[#caught.frames]
      if outermost then
        outermost.line, outermost.position = pos >> 16, pos & 0xFFFF
      else
        caught.pos = pos
      end
      error(caught, 0)
    end
    local message = "Runtime error"
    if value ~= U and value ~= "" then message = message .. ": " .. R.display(value) end
    error(setmetatable({ kind = "runtime", error = "ErrorRuntime", message = message, pos = pos, value = value }, PROBLEM), 0)
  end

  -- The errors that many parts raise.

  local function signature(name, ...)
    local types = {}
    for i = 1, select("#", ...) do
      local kind = R.type_of((select(i, ...)))
      types[i] = kind == "string" and "&str | ImmutableString | String" or kind
    end
    return name .. " (" .. concat(types, ", ") .. ")"
  end
  R.signature = signature

  function R.not_found(name, pos, ...)
    local text = signature(name, ...)
    raise("ErrorFunctionNotFound", "Function not found: " .. text, pos, { ["function"] = text }, R.hint_for_call(name, ...))
  end

  function R.mismatch(value, expected, pos, hint)
    local actual = R.type_of(value)
    local message = format("Data type incorrect: %s (expecting %s)", actual, expected)
    raise("ErrorMismatchDataType", message, pos, { requested = expected, actual = actual }, hint)
  end

  function R.not_bool(value, pos)
    R.mismatch(value, "bool", pos, "conditions must be true or false: compare, for example x != () or x > 0")
  end

  function R.arithmetic_error(message, pos, near) raise("ErrorArithmetic", message, pos, nil, nil, near) end

  function R.unbound(pos)
    raise("ErrorUnboundThis", "'this' not bound", pos, nil, "this is bound when the function is called as a method: x.f()")
  end

  function R.constant(name, pos)
    raise("ErrorAssignmentToConstant", "Cannot modify constant " .. name, pos, { variable = name })
  end

  local function bounds(name, what, length, index, pos)
    local message
    if what == "Bit-field" then
      message = format("Bit-field index %d out of bounds: only %d bits in bit-field", index, length)
    else
      local unit = what == "Array" and "element" or "character"
      local lower = what == "Array" and "array" or "string"
      local have = length == 0 and lower .. " is empty"
        or length == 1 and format("only 1 %s in %s", unit, lower)
        or format("only %d %ss in %s", length, unit, lower)
      message = format("%s index %d out of bounds: %s", what, index, have)
    end
    raise(name, message, pos, { length = length, index = index })
  end
  function R.array_bounds(length, index, pos) bounds("ErrorArrayBounds", "Array", length, index, pos) end
  function R.string_bounds(length, index, pos) bounds("ErrorStringBounds", "String", length, index, pos) end
  function R.bit_bounds(index, pos) bounds("ErrorBitFieldBounds", "Bit-field", 64, index, pos) end

  function R.no_indexer(pos, base, index, value)
    local text = R.type_of(base) .. " [" .. R.type_of(index) .. "]"
    if value ~= nil then text = text .. " = " .. R.type_of(value) end
    raise("ErrorIndexingType", "Indexer unavailable: " .. text, pos, { type = text })
  end

  -- Hints: what those who know another language meant to write.
  local call_hints = {}
  for names, hint in next, {
    ["length size"] = "the number of elements is list.len()",
    count = "the number of elements is list.len(); of some, list.filter(|x| ...).len()",
    includes = "write list.contains(x) or x in list",
    indexOf = "write list.index_of(x)",
    ["forEach each"] = "write for x in list { ... }",
    slice = "write list.extract(start..end), of a string s.sub_string(start..end)",
    ["substring substr"] = "write s.sub_string(start, length)",
    strip = "trim() changes the string: s.trim()",
    ["toUpperCase upper"] = "write s.to_upper()",
    ["toLowerCase lower"] = "write s.to_lower()",
    format = "put values into text with backticks: `total: ${x}`",
    println = "write print(x)",
    ["str String"] = "write x.to_string() or `${x}`",
    int = "write parse_int(text) or x.to_int()",
    float = "write parse_float(text) or x.to_float()",
    ["has has_key contains_key"] = "write map.contains(\"key\") or \"key\" in map",
    ["entries items"] = "go through the keys: for key in map.keys() { let value = map[key]; ... }",
    reversed = "reverse() changes the array: list.reverse()",
    sorted = "sort() changes the array: list.sort()",
    flat_map = "use two loops and push",
    flatten = "use two loops and append",
    any = "write list.some(|x| ...)",
    every = "write list.all(|x| ...)",
    unique = "sort the array, then dedup() drops neighbours that are equal",
    stringify = "write map.to_json()",
    sleep = "scripts cannot wait",
  } do
    R.compiler.words(names, hint, call_hints)
  end
  function R.hint_for_call(name, ...)
    local first = ...
    if (name == "print" or name == "debug") and select("#", ...) > 1 then
      return "print takes one value: print(`${a} ${b}`)"
    end
    if first == U and select("#", ...) > 0 and match(name, "^%a") then
      return "the value is (): methods such as trim(), push() and sort() change what they are called on and return ()"
    end
    local kind = R.kind_of(first)
    if name == "parse_json" and (kind == "map" or kind == "array") then
      return "the value is data already: use it without parse_json"
    end
    if match(name, "^[-*/%%]$") and (kind == "string" or R.kind_of((select(2, ...))) == "string") then
      return "text is not a number: write parse_float(text) or parse_int(text)"
    end
    if (name == "split" or name == "trim" or name == "to_upper") and kind ~= "string" then
      return "that is a method of strings; here it is called on " .. R.type_of(first)
    end
    return call_hints[name]
  end
end
