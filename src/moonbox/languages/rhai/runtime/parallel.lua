-- Closures that run together.
return function(R, lib, host)
  local error, pcall = lib.error, lib.pcall

  -- Closures that run together: their calls go to the host in one batch.
  -- `call(inner, index)` calls the closure of that number in a context of its own.
  local function together(K, d, pos, count, call, settle)
    local functions = {}
    for i = 1, count do
      functions[i] = function()
        local inner = R.new_context(K.S, K.shared)
        for level = 2, d - 1 do inner[level], inner[-level] = K[level], K[-level] end
        local fine, value = pcall(call, inner, i)
        K.shared.budget = inner[1]
        if not settle then
          if fine then return value end
          if R.is_problem(value) then value.frames = R.frames_of(inner, d, value) end
          error(value, 0)
        end
        if fine then return R.entries({ ok = true, value = value }) end
        local caught = R.catch(inner, d, value, true)
        return R.entries({ ok = false, error = caught })
      end
    end
    K.shared.budget = K[1]
    local results
    if host.parallel then
      results = host.parallel(functions, false)
    else
      results = {}
      for i = 1, #functions do results[i] = functions[i]() end
    end
    K[1] = K.shared.budget
    local out = {}
    for i = 1, #functions do out[i] = results[i] == nil and R.U or results[i] end
    return R.array(out)
  end

  local function parallel(K, d, pos, list, settle)
    for i = 1, #list do
      if not R.is_fn(list[i]) then
        R.raise("ErrorMismatchDataType", "parallel expects an array of closures", pos, nil, "write parallel([|| a(1), || b(2)])")
      end
    end
    return together(K, d, pos, #list, function(inner, i) return (R.invoke(inner, d, pos, list[i], nil)) end, settle)
  end

  R.add_natives("array", true, {
    parallel = function(K, d, pos, list) return parallel(K, d, pos, list, false) end,
    parallel_settle = function(K, d, pos, list) return parallel(K, d, pos, list, true) end,
    parallel_map = function(K, d, pos, list, given, extra)
      local callee = R.callback(given)
      if not callee or extra ~= nil then return nil end
      list = R.snapshot(list)
      return together(K, d, pos, #list, function(inner, i)
        return (R.caller(inner, d, pos, "parallel_map", callee)(nil, R.copy(list[i]), i - 1))
      end, false)
    end,
  })

  -- All items of a paged tool, which is given by its name or as a function pointer.
  local function pages(K, d, pos, tool, args, wish, extra)
    local name = R.is_fn(tool) and not tool[true] and tool[false].name or tool
    if lib.type(name) ~= "string" or extra ~= nil or args ~= nil and not R.is_map(args) then return nil end
    name = lib.string.gsub(name, "::", ".")
    local function fail(problem, hint) R.raise("ErrorRuntime", "pages: " .. problem, pos, nil, hint) end
    if not R.is_tool(name) then fail("there is no tool '" .. name .. "'", "write pages(\"list_orders\", #{status: \"open\"})") end
    if R.is_fn(wish) then
      local call = R.caller(K, d, pos, "pages", wish)
      local index = -1
      wish = function(item)
        index = index + 1
        return (call(nil, R.import(item), index))
      end
    elseif wish ~= nil then
      wish = R.export_argument(wish, 3, pos)
    end
    local given = args and R.export_argument(args, 2, pos) or {}
    local items, problem = host.pages(name, function(current) return R.ask_tool(K, pos, name, current) end, given, wish)
    if problem then fail(problem) end
    return R.import(items)
  end
  R.add_natives("string", true, { pages = pages })
  R.add_natives("Fn", true, { pages = pages })
end
