-- The host of the Rhai runtime in tests: `host` makes one, the others are called by machine.py.
local M = {}

function M.host(runtime, limits, tools, printed, clock)
  local STOP = {}
  local null, array_mt = setmetatable({}, {__name = "null"}), {__name = "array"}
  local host = {
    lib = {
      string = string, table = table, math = math, utf8 = utf8, coroutine = coroutine,
      pcall = pcall, error = error, select = select, type = type, next = next, setmetatable = setmetatable,
      tostring = tostring, tonumber = tonumber, rawget = rawget,
      debug = {setmetatable = debug.setmetatable, getmetatable = debug.getmetatable},
    },
    limits = limits, null = null, array_mt = array_mt, clock = clock,
    print = printed,
    load = function(text) return load(text, "=rhai", "t", {}) end,
    has_tool = function(name) return tools[name] ~= nil end,
    stop = function(limit, message) error({stop = STOP, limit = limit, message = message}, 0) end,
    is_stop = function(problem) return type(problem) == "table" and rawget(problem, "stop") == STOP end,
  }
  function host.call(name, args)
    local how, answer = tools[name](args)
    if how == "waits" then coroutine.yield() end
    if how == "fails" then error(answer, 0) end
    if how == "stops" then host.stop("time", "stopped") end
    return answer
  end
  function host.parallel(functions, settle)
    local threads, results, left = {}, {}, #functions
    for i = 1, #functions do threads[i] = coroutine.create(functions[i]) end
    while left > 0 do
      for i = 1, #threads do
        if threads[i] then
          local fine, value = coroutine.resume(threads[i])
          if not fine then error(value, 0) end
          if coroutine.status(threads[i]) == "dead" then
            results[i], threads[i], left = value, false, left - 1
          end
        end
      end
    end
    return results
  end
  local R = assert(load(runtime, "=rhai runtime", "t", {}))()(host)
  return R, host
end

function M.protected(call, name, ...)
  local fine, value = pcall(call[name], ...)
  return fine and "value" or "error", value
end

-- Runs the compiler and counts the Lua instructions that it takes, in thousands.
function M.measure(R, source)
  local steps = 0
  debug.sethook(function() steps = steps + 1 end, "", 1000)
  local fine, text = pcall(R.compiler.compile, source)
  debug.sethook()
  return steps, fine and #text or 0
end

-- Runs a function and counts its instructions, in hundreds.
function M.counted(script)
  local steps = 0
  debug.sethook(function() steps = steps + 1 end, "", 100)
  local value = script()
  debug.sethook()
  return steps, value
end

function M.is_array(host, value) return getmetatable(value) == host.array_mt end
function M.as_array(host, value) return setmetatable(value, host.array_mt) end
function M.is_null(host, value) return rawequal(value, host.null) end

function M.export(R, value)
  local fine, exported = pcall(R.export, value)
  if fine then return exported end
  error(exported.text, 0)
end

return M
