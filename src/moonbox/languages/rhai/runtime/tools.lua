-- Tools: functions that the host offers.
return function(R, lib, host)
  local type, next, select, error, pcall, setmetatable = lib.type, lib.next, lib.select, lib.error, lib.pcall, lib.setmetatable

  local function raise_tool(problem, name, pos)
    local fields = { code = "tool_error", message = "tool failed", tool = name, retryable = false }
    if type(problem) == "table" then
      for key in next, fields do
        local value = lib.rawget(problem, key)
        if value ~= nil then fields[key] = value end
      end
      local data = lib.rawget(problem, "data")
      if data ~= nil then fields.data = R.import(data) end
      fields.where = lib.rawget(problem, "where") -- of a tool script: its file and line
    else
      fields.message = lib.tostring(problem)
    end
    error(setmetatable({
      kind = "tool", error = "ErrorRuntime", message = lib.tostring(fields.message), pos = pos, value = R.entries(fields),
      code = fields.code, tool = fields.tool, retryable = fields.retryable, raised = problem,
    }, R.PROBLEM), 0)
  end

  -- Calls a tool; arguments and answer are in the host's form.
  local function ask(K, pos, name, args)
    local shared = K.shared
    shared.budget = K[1]
    R.calling = pos -- if the run is stopped meanwhile, this is where it was
    local fine, value = pcall(host.call, name, args)
    K[1] = shared.budget
    if not fine and host.is_stop and host.is_stop(value) then error(value, 0) end
    R.calling = nil
    if fine then return value end
    if type(value) ~= "table" or R.is_problem(value) then error(value, 0) end
    raise_tool(value, name, pos)
  end

  -- One map gives the arguments by name, anything else by position.
  local function call_tool(K, pos, name, ...)
    local count = select("#", ...)
    local args
    if count == 1 and R.is_map((...)) then
      args = R.export_argument((...), 1, pos)
    else
      args = {}
      for i = 1, count do
        local value = R.export_argument((select(i, ...)), i, pos)
        if value == nil then value = host.null end
        args[i] = value
      end
      if host.array_mt then setmetatable(args, host.array_mt) end
    end
    return R.import(ask(K, pos, name, args))
  end

  local function is_tool(name) return host.has_tool ~= nil and host.has_tool(name) end
  R.call_tool, R.is_tool, R.ask_tool = call_tool, is_tool, ask
end
