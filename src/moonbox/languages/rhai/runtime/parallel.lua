-- Closures that run together.
return function(R, lib, host)
  local error, pcall = lib.error, lib.pcall

  -- Closures that run together: their calls go to the host in one batch.
  local function parallel(K, d, pos, list, settle)
    local functions = {}
    for i = 1, #list do
      local fn = list[i]
      if not R.is_fn(fn) then
        R.raise("ErrorMismatchDataType", "parallel expects an array of closures", pos, nil, "write parallel([|| a(1), || b(2)])")
      end
      functions[i] = function()
        local inner = R.new_context(K.S, K.shared)
        for level = 2, d - 1 do inner[level], inner[-level] = K[level], K[-level] end
        local fine, value = pcall(R.invoke, inner, d, pos, fn, nil)
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

  R.add_natives("array", true, {
    parallel = function(K, d, pos, list) return parallel(K, d, pos, list, false) end,
    parallel_settle = function(K, d, pos, list) return parallel(K, d, pos, list, true) end,
  })
end
