-- Variables that outlive a run, and the functions that every script has.
return function(R, lib, host)
  local type, setmetatable, next = lib.type, lib.setmetatable, lib.next
  local number_type, most, least = lib.math.type, lib.math.maxinteger, lib.math.mininteger
  local floor, format = lib.math.floor, lib.string.format
  local U, add_natives = R.U, R.add_natives
  local state -- of the run under way

  function R.use_state(S) state = S end

  -- Variables: a cell {value, is constant} each, kept by name.

  function R.cellof(name) return state.vars[name] or {} end

  function R.fn_of(name, pos) return R.fn_named(name) end

  local function is_function(name) return state.names[name] ~= nil end

  -- There is no such variable; a function or tool of that name is meant, if there is one.
  function R.novar(name, pos, known_outside)
    if is_function(name) or (host.has_tool and host.has_tool(name)) then return R.fn_named(name) end
    local hint
    if known_outside == true or (known_outside == false and state.vars[name]) then
      hint = "functions do not see variables outside them: pass " .. name .. " as an argument"
    elseif name == "null" or name == "None" or name == "nil" or name == "undefined" then
      hint = "the empty value is ()"
    elseif name == "True" or name == "False" then
      hint = "write true or false"
    end
    R.raise("ErrorVariableNotFound", "Variable not found: " .. name, pos, { variable = name }, hint)
  end

  function R.need(cell, name, pos)
    if cell[1] == nil and not is_function(name) then R.novar(name, pos) end
  end

  function R.assignable(cell, name, pos)
    if cell[1] == nil then
      if is_function(name) then R.constant(name, pos) end
      R.novar(name, pos)
    end
    if cell[2] then R.constant(name, pos) end
  end

  function R.set_constant(name, value) state.constants[name] = R.copy(value) end

  function R.qualified(path, name, pos)
    if path == "global" then
      local value = state.constants[name]
      if value ~= nil then return value end
      R.raise("ErrorVariableNotFound", "Variable not found: global::" .. name, pos, { variable = "global::" .. name })
    end
    R.raise("ErrorModuleNotFound", "Module not found: " .. path, pos, { module = path }, "there are no modules")
  end

  -- `known` numbers the names that the text defines, of which the first `count` are defined by now.
  function R.is_def_var(name, known, count, at_top, pos)
    if type(name) ~= "string" then R.mismatch(name, "string", pos) end
    local number = known[name]
    return number ~= nil and number <= count or at_top and state.vars[name] ~= nil
  end

  -- Functions

  local function refused(name, hint)
    return function(K, d, pos)
      R.raise("ErrorRuntime", "'" .. name .. "' is not available in this sandbox", pos, nil, hint)
    end
  end
  local function exit(value)
    lib.error(setmetatable({ kind = "exit", error = "Exit", message = "exit", value = value }, R.PROBLEM), 0)
  end

  add_natives("none", true, {
    PI = function() return lib.math.pi end,
    E = function() return 2.718281828459045 end,
    exit = function() exit(U) end,
    timestamp = function() return R.timestamp(host.clock and host.clock() or 0.0) end,
    print = function() return U end,
  })
  add_natives("any", true, {
    exit = function(K, d, pos, value) exit(value) end,
    to_string = R.alone(R.display),
    to_debug = R.alone(R.debug),
    tag = R.alone(function() return 0 end),
  })
  add_natives("any", false, {
    take = function(K, d, pos, value, extra)
      if extra ~= nil then return nil end
      return R.copy(value), U
    end,
    set_tag = function(K, d, pos, value, tag) if R.is_int(tag) then return U end end,
  })

  -- Iterators

  local function step_range(from, to, step, pos)
    if step == 0 then R.arithmetic_error("step value cannot be zero", pos) end
    local count = 0
    local steps = setmetatable({}, { __index = function(_, n) return from + (n - 1) * step end })
    if number_type(from) == "float" then
      count = (to - from) / step
      count = count ~= count and 0 or count <= 0 and 0 or count > 2 ^ 53 and most or -floor(-count)
      return R.iterator("StepRange<f64>", steps, count)
    end
    if (step > 0) == (from < to) and from ~= to then
      local distance, by = step > 0 and to - from or from - to, step == least and most or step < 0 and -step or step
      if distance < 0 then
        count = lib.math.ult(distance, by) and 0 or most
      else
        -- A last step that would leave 64 bits ends the range before it.
        count = (distance - 1) // by + 1
        local last = from + (count - 1) * step
        if (step > 0 and last > most - step) or (step < 0 and last < least - step) then count = count - 1 end
      end
    end
    return R.iterator("StepRange<i64>", steps, count)
  end

  local function make_range(K, d, pos, from, to, step)
    if R.is_range(from) then
      if not R.is_int(to) or step ~= nil then return nil end
      local inclusive = R.kind_of(from) == "range="
      return step_range(from[true], inclusive and from[false] + 1 or from[false], to, pos)
    end
    local kind = number_type(from)
    if not kind or number_type(to) ~= kind then return nil end
    if step == nil then
      if kind == "integer" then return R.new_range(from, to, false) end
      return nil
    end
    if number_type(step) ~= kind then return nil end
    return step_range(from, to, step, pos)
  end
  for _, kind in next, { "i64", "f64", "range", "range=" } do add_natives(kind, true, { range = make_range }) end

  local range_functions = {
    start = function(K, d, pos, range) return range[true] end,
    ["end"] = function(K, d, pos, range) return range[false] end,
    is_inclusive = function(K, d, pos, range) return R.kind_of(range) == "range=" end,
    is_exclusive = function(K, d, pos, range) return R.kind_of(range) == "range" end,
    is_empty = function(K, d, pos, range)
      if R.kind_of(range) == "range=" then return range[true] > range[false] end
      return range[true] >= range[false]
    end,
    contains = function(K, d, pos, range, value)
      if not R.is_int(value) then return nil end
      return R.in_range(value, range)
    end,
  }
  for _, kind in next, { "range", "range=" } do
    add_natives(kind, true, range_functions)
    R.getters[kind] = {}
    for name, fn in next, range_functions do
      if name ~= "contains" then R.getters[kind][name] = function(range) return fn(nil, 0, 0, range) end end
    end
  end

  R.getters.Fn = {
    name = function(fn) return fn[false].name end,
    is_anonymous = function(fn) return fn[true] ~= nil end,
  }
  add_natives("Fn", true, {
    name = function(K, d, pos, fn) return fn[false].name end,
    is_anonymous = function(K, d, pos, fn) return fn[true] ~= nil end,
  })

  -- Time: the host's clock, in seconds.

  local function elapsed(time) return (host.clock and host.clock() or 0.0) - time[true] end
  R.getters.timestamp = { elapsed = elapsed }
  add_natives("timestamp", true, { elapsed = function(K, d, pos, time) return elapsed(time) end })

  function R.timestamp_moved(time, by, sign, pos)
    local seconds = by * 1.0
    if seconds > 1.8446744073709e19 or seconds < -1.8446744073709e19 or (R.is_int(by) and (by == least or by == most)) then
      local verb = sign > 0 and "adding" or "subtracting"
      R.arithmetic_error(format("Timestamp overflow when %s %s second(s)", verb, R.display(by)), pos)
    end
    return R.timestamp(time[true] + sign * seconds)
  end
end
