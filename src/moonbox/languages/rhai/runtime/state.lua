-- State and runs: what lives on between runs, how a run starts and ends, and what crosses to the host.
return function(R, lib, host)
  local type, next, error, pcall, setmetatable = lib.type, lib.next, lib.error, lib.pcall, lib.setmetatable
  local format, find, tostring = lib.string.format, lib.string.find, lib.tostring
  local most = lib.math.maxinteger
  local getmetatable, utf8_len = lib.debug.getmetatable, lib.utf8.len
  local U, kind_of = R.U, R.kind_of

  -- Variables as cells, functions by name and number of parameters, functions for one type of `this`.
  function R.new_state()
    return { vars = {}, functions = {}, typed = {}, names = {}, constants = {} }
  end

  -- What a running piece of script carries: [1] the operations it may still do, [2]... the calls under way.
  function R.new_context(S, shared)
    return { shared.budget, S = S, shared = shared }
  end

  -- Scripts that were compiled lately, in two generations: what is not used in the time of one is forgotten.
  local MOST_REMEMBERED, EACH = 8192, 200 -- bytes of source in one generation, and what each script counts besides
  local recent, older, remembered = {}, {}, 0

  local function remember(source, script)
    local size = #source + EACH
    if size > MOST_REMEMBERED then return end
    if remembered + size > MOST_REMEMBERED then older, recent, remembered = recent, {}, 0 end
    recent[source], remembered = script, remembered + size
  end

  -- `host.load` makes a function of the compiler's text; no script comes near it.
  local function new_script(source, limits)
    local text, places = R.compiler.compile(source, limits)
    places.source = source -- for inspect.lua
    local chunk, problem = host.load(text)
    if chunk then return { chunk = chunk, places = places } end
    if find(problem, "not enough memory", 1, true) then error("not enough memory", 0) end
    R.syntax_error("the script is too complex for one Lua chunk: " .. problem)
  end

  -- The chunk of a script, with the positions it wants; raises a structured error where it is none.
  function R.compile(source, limits)
    local known = not limits and recent[source]
    if known then return known end
    local script = not limits and older[source] or new_script(source, limits)
    if not limits then remember(source, script) end
    return script
  end

  -- Runs a script and returns its value; raises a structured error, or what the host uses to stop a script.
  function R.run(S, source, parse_limits)
    S.spent, S.context, R.calling = nil, nil, nil
    local script = R.compile(source, parse_limits)
    local allowed = host.limits and host.limits.max_operations
    local budget = allowed or most
    local K = R.new_context(S, { budget = budget })
    S.context, S.budget = K, budget
    R.use_state(S)
    R.use_limits()
    R.E[1] = nil
    local fine, value = pcall(script.chunk, R, S, K, script.places)
    if K.save then K.save(S.vars) end
    if fine then return value end
    if R.is_problem(value) and value.kind == "exit" then return value.value end
    value = R.finished(K, value)
    if type(value) == "table" and value.kind == "limit" and value.limit == "operations" then S.spent = allowed end
    error(value, 0)
  end

  -- Operations of the last run; also of one that was stopped, after which nothing here runs any more.
  function R.operations(S)
    return S.spent or S.context and S.budget - S.context[1] or 0
  end

  -- To the host

  -- `trail` holds the indices and keys that lead to the value.
  local function cannot_cross(trail, depth, what)
    local path = trail[0]
    for i = 1, depth - 1 do
      local key = trail[i]
      path = path .. (type(key) == "number" and format("[%d]", key - 1) or "." .. key)
    end
    local message = path .. " is " .. what
    error(setmetatable({
      kind = "runtime", error = "ErrorRuntime", message = message, text = message, trace = {}, pos = trail.pos,
    }, R.PROBLEM), 0)
  end

  local function export(value, trail, depth)
    local lua = type(value)
    if lua == "number" or lua == "string" or lua == "boolean" then return value end
    local kind = kind_of(value)
    if depth > R.max_depth then cannot_cross(trail, depth, "nested too deeply") end
    if kind == "()" then return host.null end
    if kind == "array" then
      local out = {}
      for i = 1, #value do
        trail[depth] = i
        out[i] = export(value[i], trail, depth + 1)
      end
      return host.array_mt and setmetatable(out, host.array_mt) or out
    elseif kind == "map" then
      local out = {}
      for key, item in next, value do
        if key ~= true then
          trail[depth] = key
          out[key] = export(item, trail, depth + 1)
        end
      end
      return out
    elseif kind == "char" then
      return value[true]
    elseif kind == "Fn" then
      cannot_cross(trail, depth, "a function, which cannot leave the script: return its result, f.call(...)")
    elseif kind == "blob" then
      return R.raw_text(value[true])
    end
    return R.display(value)
  end

  -- A Rhai value in the host's form; no value at all for ().
  function R.export(value)
    if value == U or value == nil then return nil end
    return export(value, { [0] = "value" }, 1)
  end

  function R.export_argument(value, number, pos)
    return export(value, { [0] = format("argument %d", number), pos = pos }, 1)
  end

  -- From the host

  local function is_list(value)
    if host.array_mt and getmetatable(value) == host.array_mt then return true end
    return #value > 0 or host.is_array ~= nil and host.is_array(value)
  end

  local function import(value, depth)
    local lua = type(value)
    if value == nil or value == host.null then return U end
    if lua == "string" then
      return utf8_len(value) and value or R.blob(R.bytes_of(value))
    end
    if lua == "number" or lua == "boolean" then return value end
    if lua ~= "table" or depth > 200 then return U end
    if is_list(value) then
      local out = {}
      for i = 1, #value do out[i] = import(value[i], depth + 1) end
      return R.array(out)
    end
    local out, count = {}, 0
    for key, item in next, value do
      if type(key) ~= "string" then key = tostring(key) end
      if out[key] == nil then count = count + 1 end
      out[key] = import(item, depth + 1)
    end
    for key in next, host.null_fields and host.null_fields(value) or {} do
      if type(key) ~= "string" then key = tostring(key) end
      if out[key] == nil then
        count = count + 1
        out[key] = U
      end
    end
    out[true] = count
    return R.map(out)
  end

  -- A host's value in Rhai's form.
  function R.import(value) return import(value, 1) end
end
