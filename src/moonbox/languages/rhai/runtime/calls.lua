-- Calls: functions of the script, of this runtime, closures, and tools.
return function(R, lib, host)
  local type, select, next, setmetatable, error = lib.type, lib.select, lib.next, lib.setmetatable, lib.error
  local unpack = lib.table.unpack
  local format, match, gsub = lib.string.format, lib.string.match, lib.string.gsub
  local number_type, getmetatable = lib.math.type, lib.debug.getmetatable
  local U, kind_of, copy = R.U, R.kind_of, R.copy
  local FN, MAP = R.FN, R.MAP

  -- Functions of the runtime: native[name][type of the first argument], or .any, or .none without arguments. Types that are
  -- tables are found by their metatables, the others by Lua's name for them.
  -- Each is called with (K, d, pos, ...) and returns its value, and what its first argument became if that cannot be
  -- changed in place; nil when it does not take such arguments.
  local native, changing = {}, {}
  R.native, R.changing = native, changing
  local keys = { i64 = "integer", f64 = "float", string = "string", bool = "boolean", any = "any", none = "none" }
  for _, meta in next, R.types do keys[meta.__name] = meta end

  -- Those that make something larger than what they are given.
  local makers = {}
  for name in lib.string.gmatch("split split_rev to_chars to_blob to_array keys values to_json parallel parallel_settle parallel_map "
    .. "entries group_by join unique sort_by order_by", "%S+") do
    makers[name] = true
  end
  local function measured(fn)
    return function(K, d, pos, ...)
      local value, changed = fn(K, d, pos, ...)
      if value ~= nil then R.check_value(value, pos) end
      return value, changed
    end
  end

  -- Adds functions for one type. `pure` says whether they may be called on constants.
  function R.add_natives(kind, pure, functions)
    for names, fn in next, functions do
      for name in lib.string.gmatch(names, "%S+") do
        native[name] = native[name] or {}
        native[name][keys[kind]] = makers[name] and measured(fn) or fn
        if not pure then
          changing[name] = changing[name] or {}
          changing[name][kind] = true
        end
      end
    end
  end
  function R.native_of(name, kind) return native[name][keys[kind]] end

  -- A function of one value, which takes no further argument.
  function R.alone(fn)
    return function(K, d, pos, value, extra)
      if extra == nil then return fn(value, pos) end
    end
  end

  local function call_native(K, d, pos, name, ...)
    local overloads = native[name]
    if not overloads then return nil end
    local first = ...
    local lua = type(first)
    local fn
    if lua == "table" then
      fn = overloads[getmetatable(first)]
    elseif lua == "number" then
      fn = overloads[number_type(first)]
    elseif first == nil then
      fn = overloads.none
      if not fn then return nil end
      return fn(K, d, pos)
    else
      fn = overloads[lua]
    end
    fn = fn or overloads.any
    if fn then return fn(K, d, pos, ...) end
  end

  -- Calls a function of the script; its result may be part of a variable, so it is copied.
  local function call_script(K, d, pos, name, fn, this, ...)
    K[d], K[-d] = pos, name
    local value, changed = fn(K, d + 1, this, ...)
    K[d] = 0
    return copy(value), changed
  end

  function R.def(S, name, count, this_type, fn)
    local key = name .. "_" .. format("%d", count)
    if this_type then
      S.typed[key] = S.typed[key] or {}
      S.typed[key][this_type] = fn
    else
      S.functions[key] = fn
    end
    S.names[name] = true
  end

  local call_tool, is_tool = R.call_tool, R.is_tool

  -- Functions by name

  local function call_any(K, d, pos, name, key, hint, ...)
    local fn = K.S.functions[key]
    if fn then return call_script(K, d, pos, name, fn, nil, ...) end
    local value, changed = call_native(K, d, pos, name, ...)
    if value ~= nil then return value, changed end
    if is_tool(name) then return call_tool(K, pos, name, ...) end
    if hint then
      local text = R.signature(name, ...)
      R.raise("ErrorFunctionNotFound", "Function not found: " .. text, pos, { ["function"] = text },
        format("a closure in a variable is called %s.call(...)", name))
    end
    R.not_found(name, pos, ...)
  end
  function R.callf(K, d, pos, name, key, ...) return call_any(K, d, pos, name, key, false, ...) end
  function R.callv(K, d, pos, name, key, ...) return call_any(K, d, pos, name, key, true, ...) end

  function R.callq(K, d, pos, path_pos, path, name, ...)
    local tool = gsub(path, "::", ".") .. "." .. name
    if is_tool(tool) then return call_tool(K, pos, tool, ...) end
    if path == "tools" and is_tool(name) then return call_tool(K, pos, name, ...) end
    if path == "global" then return call_any(K, d, pos, name, name .. "_" .. format("%d", select("#", ...)), false, ...) end
    R.raise("ErrorModuleNotFound", "Module not found: " .. path, path_pos, { module = path },
      "there are no modules; a tool of a server is called server::tool(...)")
  end

  function R.in_scope(name, pos)
    R.raise("ErrorRuntime", "'" .. name .. "!' cannot run in the scope of its caller here", pos)
  end

  -- Closures and function pointers: fn[true] is the Lua function of a closure, fn[false] what is known of it.

  local function new_fn(name, count, fn, curried)
    return setmetatable({ [true] = fn, [false] = { name = name, count = count, curried = curried } }, FN)
  end
  function R.fnptr(name, count, fn) return new_fn(name, count, fn) end
  function R.fn_named(name) return new_fn(name) end

  local function curried_call(curried, call, ...)
    local all, count = {}, #curried
    for i = 1, count do all[i] = copy(curried[i]) end
    for i = 1, select("#", ...) do
      count = count + 1
      all[count] = (select(i, ...))
    end
    return call(unpack(all, 1, count))
  end

  -- Calls a Fn; `this` is nil when it is not called as a method.
  local function invoke(K, d, pos, fn, this, ...)
    local info = fn[false]
    if info.curried then
      local plain = new_fn(info.name, info.count, fn[true])
      return curried_call(info.curried, function(...) return invoke(K, d, pos, plain, this, ...) end, ...)
    end
    local count = select("#", ...)
    if fn[true] then
      if info.count == count then return call_script(K, d, pos, info.name, fn[true], this, ...) end
      R.raise("ErrorFunctionNotFound", "Function not found: " .. R.signature(info.name, ...), pos, nil,
        format("the closure takes %d argument(s), not %d", info.count, count))
    end
    local name = info.name
    local script = K.S.functions[name .. "_" .. format("%d", count)]
    if script then return call_script(K, d, pos, name, script, this, ...) end
    local value, changed
    if this ~= nil then
      value, changed = call_native(K, d, pos, name, this, ...)
    else
      value, changed = call_native(K, d, pos, name, ...)
    end
    if value == nil and is_tool(name) then
      if this ~= nil then return call_tool(K, pos, name, this, ...) end
      return call_tool(K, pos, name, ...)
    end
    if value ~= nil then return value, changed end
    if this ~= nil then R.not_found(name, pos, this, ...) end
    R.not_found(name, pos, ...)
  end
  R.invoke = invoke

  -- The function that an array method was given: a closure, a pointer, or the name of a function.
  function R.callback(value)
    if type(value) == "string" and match(value, "^%a[%w_]*$") then return new_fn(value) end
    return R.is_fn(value) and value or nil
  end

  local function has_script(K, name, count) return K.S.functions[name .. "_" .. format("%d", count)] ~= nil end

  -- Prepares calls back with as many of (before, item, extra) as the function takes; the item is `this` when it takes none.
  -- `before` says whether there is a value before the item, `bound` that the item always is `this`.
  -- The function that is returned takes (before, item, extra) and returns the value and what the item became.
  function R.caller(K, d, pos, name, fn, before, bound)
    local info = fn[false]
    local have = before and 1 or 0
    local curried = info.curried and #info.curried or 0
    local count = info.count and info.count - curried
    if not fn[true] then
      for n = have, have + 2 do
        if not count and has_script(K, info.name, n + curried) then count = n end
      end
      count = count or (native[info.name] and have) or (is_tool(info.name) and have + 1)
    end
    local impl = not info.curried and fn[true]
    if count == have then
      if before then return function(first, item) return invoke(K, d, pos, fn, item, first) end end
      return function(_, item) return invoke(K, d, pos, fn, item) end
    elseif count == have + 1 and bound then
      return function(_, item, extra) return invoke(K, d, pos, fn, item, extra) end
    elseif count == have + 1 then
      if before then return function(first, item) return invoke(K, d, pos, fn, nil, first, item) end end
      if not impl then return function(_, item) return invoke(K, d, pos, fn, nil, item) end end
      return function(_, item)
        K[d], K[-d] = pos, info.name
        local value = impl(K, d + 1, nil, item)
        K[d] = 0
        if type(value) == "table" then return copy(value) end
        return value
      end
    elseif count == have + 2 and not bound then
      if before then return function(first, item, extra) return invoke(K, d, pos, fn, nil, first, item, extra) end end
      return function(_, item, extra) return invoke(K, d, pos, fn, nil, item, extra) end
    end
    return function(first, item, extra)
      local all = {}
      for i = 1, curried do all[i] = info.curried[i] end
      if before then all[#all + 1] = first end
      all[#all + 1], all[#all + 2] = item, extra
      error(setmetatable({
        kind = "runtime", error = "ErrorFunctionNotFound", pos = pos,
        message = "Function not found: " .. R.signature(info.name, unpack(all)),
        frames = { { fn = name, line = pos >> 16, position = pos & 0xFFFF } },
      }, R.PROBLEM), 0)
    end
  end

  -- Methods

  -- f.call(...), or x.call(f, ...) with x as `this`.
  function R.call_method(K, d, pos, target, ...)
    if R.is_fn(target) then return (invoke(K, d, pos, target, nil, ...)) end
    if select("#", ...) == 0 then R.mismatch(target, "Fn", pos) end
    local fn = ...
    if not R.is_fn(fn) then R.mismatch(fn, "Fn", pos) end
    return invoke(K, d, pos, fn, target, select(2, ...))
  end

  function R.curry_method(K, d, pos, target, ...) return R.do_curry(K, d, pos, pos, target, ...) end

  local function method(K, d, pos, name, key, target, ...)
    if type(target) == "table" and getmetatable(target) == MAP then
      local fn = target[name]
      if fn ~= nil and R.is_fn(fn) then return invoke(K, d, pos, fn, target, ...) end
    end
    local S = K.S
    if S.names[name] then
      local typed = S.typed[key]
      local fn = typed and typed[kind_of(target)] or S.functions[key]
      if fn then return call_script(K, d, pos, name, fn, target, ...) end
    end
    local value, changed = call_native(K, d, pos, name, target, ...)
    if value ~= nil then return value, changed end
    if is_tool(name) then return call_tool(K, pos, name, target, ...) end
    R.not_found(name, pos, target, ...)
  end
  R.method = method

  -- A method on a constant: functions that change what they are called on are refused.
  function R.cmethod(K, d, pos, name, key, target, ...)
    local S = K.S
    if not S.functions[key] and not S.typed[key] and changing[name] and changing[name][kind_of(target)] then
      R.raise("ErrorNonPureMethodCallOnConstant", "Non-pure method '" .. name .. "' cannot be called on constant", pos,
        { ["function"] = name })
    end
    return (method(K, d, pos, name, key, copy(target), ...))
  end

  -- What the language itself defines

  function R.do_call(K, d, pos, first_pos, fn, ...)
    if not R.is_fn(fn) then R.mismatch(fn, "Fn", first_pos) end
    return (invoke(K, d, pos, fn, nil, ...))
  end

  function R.do_curry(K, d, pos, first_pos, fn, ...)
    if not R.is_fn(fn) then R.mismatch(fn, "Fn", first_pos) end
    local info = fn[false]
    local curried = {}
    for i = 1, info.curried and #info.curried or 0 do curried[i] = info.curried[i] end
    for i = 1, select("#", ...) do curried[#curried + 1] = copy((select(i, ...))) end
    return new_fn(info.name, info.count, fn[true], curried)
  end

  local reserved = {}
  for word in lib.string.gmatch("if else while loop for in let const fn return break continue switch do until throw try "
    .. "catch true false import export as private print debug type_of eval call curry Fn is_shared is_def_var is_def_fn this "
    .. "null nil void var match new case async await yield", "%S+") do reserved[word] = true end

  function R.do_Fn(K, d, pos, first_pos, name)
    if type(name) ~= "string" then R.mismatch(name, "string", first_pos) end
    if reserved[name] then R.raise("ErrorParsing", "Syntax error: '" .. name .. "' is a reserved keyword", first_pos) end
    if not match(name, "^%a[%w_]*$") then R.raise("ErrorFunctionNotFound", "Function not found: " .. name, first_pos) end
    return new_fn(name)
  end

  function R.do_is_def_fn(K, d, pos, first_pos, ...)
    local this_type, name, count = nil, ...
    if select("#", ...) == 3 then this_type, name, count = ... end
    if type(name) ~= "string" then R.mismatch(name, "string", first_pos) end
    if number_type(count) ~= "integer" then R.mismatch(count, "i64", first_pos) end
    local key = name .. "_" .. format("%d", count)
    if this_type then
      local typed = K.S.typed[key]
      return typed ~= nil and typed[this_type] ~= nil
    end
    return K.S.functions[key] ~= nil
  end

  function R.do_eval(K, d, pos)
    R.raise("ErrorFunctionNotFound", "'eval' is not available in this sandbox", pos, nil, "write the code in the script itself")
  end
  function R.import_(path, pos)
    local text = type(path) == "string" and path or R.display(path)
    R.raise("ErrorModuleNotFound", "Module not found: " .. text, pos, { module = text }, "there are no modules to import")
  end
  function R.export_(pos)
    R.raise("ErrorRuntime", "'export' is not available in this sandbox", pos, nil, "the last expression is the script's value")
  end

  function R.do_print(K, d, pos, _, value)
    if host.print then host.print(value == nil and "" or R.display(value)) end
    return U
  end
  function R.do_debug(K, d, pos, _, value)
    if host.print then host.print(value == nil and "" or R.debug(value)) end
    return U
  end
end
