-- Stopping a script for good: limit errors that pcall, xpcall, handlers and coroutines cannot swallow.
--
-- A stop is raised as the STOP object, and `state.stopped` says why. Whatever could catch it (pcall, xpcall, resume) looks at
-- `stopped` afterwards and raises again; the hook, once tripped, raises at every further instruction of the script.
return function(host)
  local raw_pcall, raw_xpcall, raw_error = pcall, xpcall, error
  local type, rawequal = type, rawequal
  local sethook, gethook, getinfo = debug.sethook, debug.gethook, debug.getinfo
  local collect = collectgarbage
  local native_used, quiet = host.used, host.quiet -- not used where operations are counted: their number is the same on every host
  local max, min = math.max, math.min
  local find, gsub, sub = string.find, string.gsub, string.sub
  local OUT_OF_MEMORY = "not enough memory"
  local SLACK = 8192 -- bytes that the prelude itself may need for a run

  local STOP = {}
  local M = { STOP = STOP }
  local stopped            -- nil, or {limit=, message=}
  local resting = false    -- whether the run is over, so that no code of the script will run
  local trusted = {}       -- our functions, in which the hook does not raise
  local memory_soft, memory_start = math.huge, 0
  local operations, max_operations, period, next_look = 0, nil, 0, 0

  local function hook()
    if resting then return end
    if max_operations and not stopped then
      operations = operations + period
      if operations >= max_operations then
        stopped = { limit = "operations", message = "the script used more than max_operations = " .. max_operations .. " operations" }
      elseif operations < next_look then
        return
      else
        next_look = operations + 10000
        local reason = host.reason()
        if reason == 0 then return end
        stopped = { external = reason }
      end
    elseif not stopped then
      local reason = host.reason()
      if reason == 0 then return end
      stopped = { external = reason }
    end
    local caller = getinfo(2, "f")
    if caller and trusted[caller.func] then return end
    sethook(hook, "", 1)
    raw_error(STOP, 0)
  end
  M.hook = hook

  -- Ends the run because of a limit. Never returns.
  local function stop(limit, message)
    if not stopped then
      stopped = { limit = limit, message = message }
    end
    sethook(hook, "", 1)
    raw_error(STOP, 0)
  end
  M.stop = stop

  -- Ends the run because the host said so.
  function M.external()
    if not stopped then stopped = { external = host.reason() } end
    sethook(hook, "", 1)
    raw_error(STOP, 0)
  end

  local function out_of_memory()
    stop("memory", "the script needed more memory than max_memory allows")
  end
  M.out_of_memory = out_of_memory

  -- Bytes of memory in use.
  local function used()
    return (max_operations or not native_used) and collect("count") * 1024 or native_used()
  end

  -- Called before every host call, which must never fail for lack of Lua memory.
  -- Memory that was in use when the run began (an earlier run may have been stopped for it) does not count.
  local function guard()
    if stopped then raw_error(STOP, 0) end
    if used() > memory_soft then
      collect()
      local rest = used()
      if rest > memory_soft and rest > memory_start + SLACK then out_of_memory() end
    end
  end
  M.guard = guard

  -- The place where the script called our function that failed, `level` calls up; "" if the script did not call it.
  local function caller(level, co)
    local ours = false
    while true do
      local info = co and getinfo(co, level, "Sl") or not co and getinfo(level, "Sl")
      if not info then return "" end
      local source = info.source
      if find(source, "^=script") then return sub(source, 2) .. ":" .. info.currentline .. ": " end
      if find(source, "^=moonbox/") then
        ours = true
      elseif ours then
        return ""
      end
      level = level + 1
    end
  end

  -- Raises an error of one of our functions, at the place where the script called it.
  function M.complain(message) raw_error(caller(1) .. message, 0) end

  -- Errors of C functions that the prelude calls name places and variables of the prelude; this puts the script's in their place.
  -- The only userdata is null.
  local function told(problem, level, co)
    if type(problem) ~= "string" then return problem end
    if find(problem, "^moonbox/") then
      problem = caller(level, co) .. gsub(gsub(problem, "^moonbox/%w+:%d+: ", ""), "'raw_(%w+)'", "'%1'")
    end
    if find(problem, "userdata", 1, true) and find(problem, "^[%w#:]* ?attempt to ") or find(problem, "(userdata)", 1, true) then
      problem = gsub(problem, "userdata", "null")
    end
    return problem
  end

  local function again(ok, ...)
    if ok and not stopped then return true, ... end
    if stopped then
      sethook(hook, "", 1) -- the stop may have happened in another coroutine
      raw_error(STOP, 0)
    end
    local problem = ...
    if problem == OUT_OF_MEMORY then out_of_memory() end
    if rawequal(problem, STOP) then raw_error(STOP, 0) end
    return false, problem
  end
  M.again = again

  local function as_told(problem) return (told(problem, 4)) end
  trusted[as_told], trusted[told], trusted[caller] = true, true, true

  function M.pcall(f, ...)
    return again(raw_xpcall(f, as_told, ...))
  end

  function M.xpcall(f, handler, ...)
    if type(handler) ~= "function" then
      raw_error("bad argument #2 to 'xpcall' (function expected, got " .. host.kind(handler) .. ")", 2)
    end
    local function guarded(problem)
      if stopped or rawequal(problem, STOP) then return STOP end
      return handler((told(problem, 4)))
    end
    return again(raw_xpcall(f, guarded, ...))
  end

  -- Every coroutine needs its own hook, which slows it down: `host.adopt` removes it until it is needed.
  function M.adopt(co)
    guard()
    if max_operations then
      operations = operations + period
      sethook(co, hook, "", period)
    else
      sethook(co, hook, "", 10000)
      host.adopt(co)
    end
    return co
  end

  -- The coroutines that run now, by level. The interrupt holds their addresses, so they must not be collected: an error
  -- on the way into `raw_resume` (a stack overflow) leaves one listed until an outer one returns or the run ends.
  local active, level = {}, 0

  local function enter(co)
    if stopped then raw_error(STOP, 0) end
    if max_operations then
      local of, _, count = gethook(co)
      if of ~= hook or count ~= period then -- made by a run that counted differently
        operations = operations + period
        sethook(co, hook, "", period)
      end
    end
    local mine = level + 1
    active[mine] = co
    level = mine
    host.enter(mine, co)
    return mine
  end

  local function left(mine, ...)
    host.leave(mine)
    local co = active[mine]
    for above = level, mine, -1 do active[above] = nil end
    level = mine - 1
    if stopped then
      sethook(hook, "", 1) -- this coroutine may have variables to close
      raw_error(STOP, 0)
    end
    local ok, problem = ...
    if not ok then
      if problem == OUT_OF_MEMORY then out_of_memory() end
      if rawequal(problem, STOP) then raw_error(STOP, 0) end
      return false, told(problem, 0, co)
    end
    return ...
  end

  local raw_resume, raw_close = coroutine.resume, coroutine.close
  -- Resumes `co` and lets the interrupt know which coroutine runs; a stop passes through.
  function M.resume(co, ...)
    return left(enter(co), raw_resume(co, ...))
  end

  -- Closes `co`, which runs what it has to close.
  function M.close(co)
    return left(enter(co), raw_close(co))
  end

  function M.begin(limits, count)
    stopped, resting = nil, false
    if active[1] then active = {} end
    level = 0
    operations, max_operations = 0, count and limits.max_operations or nil
    memory_soft, memory_start = limits.memory_soft, 0
    if used() > memory_soft then
      collect()
      memory_start = used()
    end
    if max_operations then
      period = max(1, min(100, max_operations // 100))
      next_look = 10000
      sethook(hook, "", period)
    elseif limits.polling then
      sethook(hook, "", 10000)
    end
  end

  function M.finish()
    local reason = stopped
    if not max_operations and quiet then quiet() else sethook(hook, "", 1000000) end -- until the engine removes it
    stopped = nil
    return reason, max_operations and operations or nil
  end

  -- Until the next `begin` only the prelude runs: a late stop must not interrupt the report.
  function M.rest() resting = true end

  function M.stopped() return stopped end
  -- The coroutines that run now, by level, and how many they are.
  function M.running() return active, level end
  function M.trust(f) trusted[f] = true return f end
  trusted[M.finish], trusted[M.rest] = true, true
  M.raw_pcall = raw_pcall
  return M
end
