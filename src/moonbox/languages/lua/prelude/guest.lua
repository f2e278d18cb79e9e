-- Guest languages: compiled to Lua and run here by a compiler and a runtime of their own, with the same stops, calls and values.
--
-- A runtime is a chunk that returns function(host) -> R with new_state, run, operations, export, import; see languages/language.py.
return function(host, stop, encode, calls, order, nulls)
  local type, next, rawget, rawequal, raw_error, load = type, next, rawget, rawequal, error, load
  local gsub, match, concat, unpack = string.gsub, string.match, table.concat, table.unpack
  local getmetatable, setmetatable = debug.getmetatable, debug.setmetatable
  local sethook = debug.sethook
  local OUT_OF_MEMORY = "not enough memory"
  local MOST_INSTRUCTIONS = 5000000

  local M = {}
  local R, state
  local latest -- the value of the last run, as the runtime has it
  local current -- the text of the latest script
  local lent = {}
  local limits, targets = {}, {}
  local forms = {} -- name of a tool -> the parameters that it is paged with

  -- The library that a runtime builds on, out of reach of its scripts.
  local lib = {
    string = string, table = table, math = math, utf8 = utf8, coroutine = coroutine,
    pcall = stop.raw_pcall, error = raw_error, select = select, type = type, next = next,
    setmetatable = _G.setmetatable, tostring = tostring, tonumber = tonumber, rawget = rawget,
    debug = { setmetatable = setmetatable, getmetatable = getmetatable },
  }

  local surroundings = { lib = lib, limits = limits, null = host.null, array_mt = host.array }

  -- The set of an object's null fields, or nil. An array's length counts its nulls.
  function surroundings.null_fields(value)
    local _, fields = nulls.of(value)
    return fields
  end
  surroundings.is_array = nulls.is_array

  function surroundings.has_tool(name) return targets[name] ~= nil end

  -- `args` is a list (marked as an array) or a map of named arguments.
  function surroundings.call(name, args)
    if getmetatable(args) == host.array then
      return calls.call(targets[name], name, unpack(args, 1, #args))
    end
    return calls.call(targets[name], name, args)
  end

  -- All items of a paged tool; or nil, and what is wrong. `ask(args)` calls it.
  function M.let_page(paging)
    function surroundings.pages(name, ask, args, wish)
      local problem = paging.problem_with(wish)
      if problem then return nil, problem end
      return paging.collect(ask, name, forms[name], args, wish)
    end
  end

  function surroundings.print(text) host.write(text .. "\n") end
  function surroundings.clock() return host.clock("clock") end
  function surroundings.is_stop(problem)
    return stop.stopped() ~= nil or rawequal(problem, stop.STOP) or problem == OUT_OF_MEMORY
  end
  function surroundings.parallel(functions, settle)
    return calls.schedule(#functions, function(index) return functions[index] end, #functions, settle)
  end

  -- Loads what a runtime's compiler wrote: text only, with nothing in reach but its arguments.
  function surroundings.load(text) return load(text, "=guest", "t", {}) end

  function M.load(runtime)
    R = load(runtime, "=runtime", "t", {})()(surroundings)
    state = R.new_state()
  end

  function M.limits(values)
    for key in next, limits do limits[key] = nil end
    for _, key in next, { "max_operations", "max_string", "max_array", "max_depth" } do limits[key] = values[key] end
    if R then
      R.max_string, R.max_array, R.max_map = limits.max_string, limits.max_array, limits.max_array
    end
  end

  -- Tools and functions by the names that runtimes know them under: parts are joined by dots.
  function M.configure(config)
    targets = { docs_get = "docs.get", docs_search = "docs.search", docs_describe = "docs.describe", docs_names = "docs.names" }
    forms = {}
    for _, entries in next, { config.functions, config.tools } do
      for _, entry in next, entries do
        local name = gsub(entry[1], "\31", ".")
        targets[name], forms[name] = entry[2], entry[3]
      end
    end
    for _, entry in next, config.values do
      state.vars[gsub(entry[1], "\31", "_")] = { R.import(entry[2]), true }
    end
  end

  -- The script, ready to be called: it is compiled when it runs, under the same limits.
  function M.script(source)
    return function()
      latest, current = nil, source
      local returned = R.run(state, source)
      local value = R.export(returned)
      if value ~= nil then
        latest = returned
        return value
      end -- else no value
    end
  end

  -- The value of the last run as a list of one, in the runtime's own form; nil where no runtime is loaded.
  function M.latest()
    local value = latest
    latest = nil
    return R and { value, n = value ~= nil and 1 or 0 } or nil
  end

  -- Sets a variable for one run; afterwards the previous one is restored. `foreign` says that the value is in the host's form.
  function M.lend(name, value, foreign)
    if lent[name] == nil then lent[name] = state.vars[name] or false end
    state.vars[name] = { foreign and R.import(value) or value, not foreign }
  end

  function M.give_back()
    if next(lent) == nil then return end
    for name, before in next, lent do state.vars[name] = before or nil end
    lent = {}
  end

  -- Raises the problem of a script that does not compile.
  function M.check(source) R.compile(source) end

  -- The script's outline as JSON, where the runtime's compiler has `outline`; "" for what is no script.
  function M.outline(source)
    sethook(function() raw_error("the script takes too long to read", 0) end, "", MOST_INSTRUCTIONS)
    local fine, text = stop.raw_pcall(R.compiler.outline, source)
    sethook()
    return fine and text or ""
  end

  function M.operations() return R.operations(state) end

  local function position(frame)
    return (frame.line or -1) .. "," .. encode.quote("function '" .. tostring(frame.fn) .. "'")
  end

  local function text_field(value) return type(value) == "string" and encode.quote(value) or "null" end

  -- The report of a failure of the runtime's own: kind, message, frames (JSON), extra (JSON); nil for anything else.
  function M.report(problem)
    if type(problem) ~= "table" or not rawget(problem, "text") then return nil end
    local frames = {}
    for index, frame in next, problem.trace or {} do
      frames[index] = "[\"script\"," .. position(frame) .. "]"
    end
    local raised = rawget(problem, "raised")
    local fine, data = stop.raw_pcall(encode.wire, "error", 1, { raised })
    if raised == nil and problem.value ~= nil then
      fine, data = stop.raw_pcall(function() return encode.wire("error", 1, { R.export(problem.value) }) end)
    end
    local extra = '{"line":' .. (problem.line or problem.near_line or "null") .. ',"column":'
      .. (problem.position or problem.near_position or "null") .. ',"hint":' .. text_field(problem.hint)
      .. ',"data":' .. (fine and data or "[null]") .. "}"
    if problem.kind == "limit" then return "stop", problem.limit or "operations", problem.text, extra end
    local kind = (problem.kind == "tool" or problem.kind == "syntax") and problem.kind or "runtime"
    return kind, problem.text, "[" .. concat(frames, ",") .. "]", extra
  end

  -- Where a run was stopped, as JSON: at a call, if it waited for one.
  function M.where()
    local pos = R and R.calling
    if not pos or pos == 0 then return "{}" end
    return '{"line":' .. (pos >> 16) .. ',"column":' .. (pos & 0xFFFF) .. "}"
  end

  function M.globals()
    local parts = {}
    for name, cell in order.each(state.vars) do
      if type(name) == "string" and #parts < 1000 then
        parts[#parts + 1] = "[" .. encode.quote(name) .. "," .. encode.quote(R.type_of(cell[1])) .. "]"
      end
    end
    for name in order.each(state.names) do parts[#parts + 1] = "[" .. encode.quote(name) .. ',"function"]' end
    return "[" .. concat(parts, ",") .. "]"
  end

  -- For inspect.lua

  local OPENED = { ["()"] = "null", array = "list", i64 = "number", f64 = "number", bool = "boolean" }

  -- A value of the runtime: how it is written, and with what.
  function M.open(value)
    local kind = R.kind_of(value)
    if kind == "char" then return "string", value[true] end
    if kind == "array" then return "list", #value end
    if kind == "map" then return "map" end
    return OPENED[kind] or kind, value
  end

  -- The variables that live on between runs.
  function M.each_global()
    local step, walk, name, cell = order.each(state.vars)
    return function()
      name, cell = step(walk, name)
      if name ~= nil then return name, cell[1] end
    end
  end

  -- The variables of a frame, from its Lua locals: the compiler's list has for each its Lua name and its own.
  local function renamed(variables, lua_values)
    local names, values = {}, {}
    local function add(name, value)
      if value == nil then return end -- not defined yet
      if not values[name] then names[#names + 1] = name end
      values[name] = { value }
    end
    if lua_values.this then add("this", lua_values.this[1]) end
    for _, var in next, variables do
      local base, index = match(var.lua or "", "^(%w+)%[?(%d*)%]?$")
      local held = base and lua_values[base]
      local value = held and held[1]
      if value ~= nil and index ~= "" then value = value[tonumber(index)] end
      if value ~= nil and var.cell then value = value[1] end
      add(var.name, value)
    end
    return names, values
  end

  local function site(at)
    if type(at) == "string" then
      local name, line = match(at, "^(.*)@(%d+):%d+$")
      return name, tonumber(line)
    end
    return nil, at and at ~= 0 and at >> 16 or nil
  end

  local called_at -- where the next frame outwards calls the runtime's function whose frame was met last

  -- A frame of the runtime's scripts: its function, its line, whether it is of this run's script, and its variables.
  function M.frame(collect, co, level, info)
    local is_script = info.source == "=guest"
    if not is_script and info.source ~= "=runtime" then return nil end
    local _, all = collect(co, level, info.func)
    local K, d, places, pos = all.K and all.K[1], all.d and all.d[1], all.P and all.P[1], called_at
    called_at = not is_script and (all.pos and all.pos[1] or called_at) or nil
    if not is_script or not K or not d then return nil end
    local name = site(K[d - 1]) or K[1 - d]
    local _, line = site(K[d])
    if not line then _, line = site(pos) end
    local variables = {}
    if places then _, _, variables = R.compiler.compile(places.source) end
    name = d == 2 and "main script" or name and gsub(name, "^anon%$.*", "closure") or "?"
    return name, line, places ~= nil and places.source == current, renamed(variables, all)
  end

  return M
end
