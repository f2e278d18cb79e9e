-- Calls to the host: one at a time, or many at once under `parallel`.
--
-- A request is {target=, args=}. Outside `parallel` a call goes to the host and waits. Inside, the coroutine yields its
-- requests to the scheduler above it; the outermost scheduler sends the collected requests and passes the answers down.
return function(host, stop, encode, order, nulls)
  local type, select, tostring, setmetatable, raw_error = type, select, host.tostring, setmetatable, error
  local rawget, rawequal, rawlen, next = rawget, rawequal, rawlen, next
  local create, status, yield, running = coroutine.create, coroutine.status, coroutine.yield, coroutine.running
  local isyieldable, raw_resume = coroutine.isyieldable, coroutine.resume
  local concat, sort, format = table.concat, table.sort, string.format
  local guard, resume, adopt = stop.guard, stop.resume, stop.adopt
  local exchange, kind = host.exchange, host.kind
  local MOST_UNDER_WAY = 1000 -- the host refuses ten times as many at once

  local M = {}
  local last_id = 0
  local in_flight, under_way = {}, 0   -- id -> request, of the outermost scheduler; how many they are
  local queue, first, last = {}, 1, 0  -- requests that wait until fewer are under way
  local inbox = {}                     -- answers that came while something else was waiting
  local scheduled, has_scheduled = setmetatable({}, { __mode = "k" }), false

  -- State that is already reset is not written again, here and elsewhere at the beginning of a run: the first write to a page
  -- of a process that was just forked copies the page.
  function M.begin()
    if under_way ~= 0 or last ~= 0 then
      in_flight, under_way = {}, 0
      queue, first, last = {}, 1, 0
    end
    if inbox[1] then inbox = {} end
    if last_id ~= 0 then last_id = 0 end -- a replay leaves stopped runs out: numbers must not depend on earlier runs
  end

  -- Removes the request of that id from those under way and returns it.
  local function landed(id)
    local request = in_flight[id]
    if request then
      in_flight[id] = nil
      under_way = under_way - 1
    end
    return request
  end

  local error_meta = {
    __name = "ToolError",
    __metatable = false,
    __tostring = function(problem)
      local tool = rawget(problem, "tool")
      return (tool and tostring(tool) .. ": " or "") .. tostring(rawget(problem, "message"))
    end,
  }
  error_meta.__concat = function(left, right)
    return tostring(left) .. tostring(right)
  end
  M.error_meta = error_meta

  local function as_error(problem)
    return setmetatable(problem, error_meta)
  end

  -- Calls `found` with each answer of the host (id, ok, value); a single -1 means that the run is being stopped.
  local function each_answer(found, ...)
    local first = ...
    if first == -1 then
      stop.external()
    end
    for position = 1, select("#", ...), 3 do
      local id, ok, value = select(position, ...)
      found(id, ok, value)
    end
  end

  local middles = {} -- target -> the text between a call's number and its arguments

  local function middle(target)
    local text = middles[target]
    if not text then
      text = "," .. encode.quote(target) .. ","
      middles[target] = text
    end
    return text
  end

  -- Sends one call and waits for answers.
  local ask = host.ask or function(id, middle, args) return exchange("[[" .. id .. middle .. args .. "]]") end

  -- Waits for the answer to the request `id`, given the first answers; answers to other requests go to the inbox.
  local function awaited(id, ...)
    local got, ok, value, more = ...
    if got == id and more == nil then -- the usual case: this answer alone
      guard()
      return ok, value
    end
    local done, succeeded, result = false, nil, nil
    local function found(got, ok, value)
      if got == id then
        done, succeeded, result = true, ok, value
      else
        local request = landed(got)
        if request then inbox[#inbox + 1] = { request, ok, value } end
      end
    end
    each_answer(found, ...)
    while not done do
      each_answer(found, exchange(""))
    end
    guard()
    return succeeded, result
  end

  local function direct(target, args)
    guard()
    last_id = last_id + 1
    return awaited(last_id, ask(last_id, middle(target), args))
  end

  -- The requests that may be sent now, as JSON; "" if there are none.
  local function departures()
    local parts = {}
    while first <= last and under_way < MOST_UNDER_WAY do
      local request = queue[first]
      queue[first] = nil
      first = first + 1
      if not request.dropped then
        last_id = last_id + 1
        request.id = last_id
        in_flight[last_id] = request
        under_way = under_way + 1
        parts[#parts + 1] = "[" .. last_id .. middle(request.target) .. request.args .. "]"
      end
    end
    return #parts > 0 and "[" .. concat(parts, ",") .. "]" or ""
  end

  -- The outermost exchange: sends the requests, and waits for at least one answer to a request in `owner`. Answers to other
  -- requests go to the inbox.
  local function exchange_all(requests, owner)
    guard()
    for _, request in next, requests do
      last = last + 1
      queue[last] = request
    end
    local answers, others, waiting = {}, {}, inbox
    inbox = others
    local function sort_in(answer)
      local list = owner[answer[1]] and answers or others
      list[#list + 1] = answer
    end
    for _, answer in next, waiting do sort_in(answer) end
    local function found(id, ok, value)
      local request = landed(id)
      if request then sort_in({ request, ok, value }) end
    end
    local payload = departures()
    while payload ~= "" or #answers == 0 do
      each_answer(found, exchange(payload))
      payload = #answers == 0 and departures() or ""
    end
    guard()
    return answers
  end

  local function below(requests)
    return yield(requests)
  end

  local function in_schedule()
    return has_scheduled and scheduled[running()] and isyieldable()
  end

  -- Returns true and the value; false and the error; "refused" and why the arguments cannot be sent; or, inside parallel,
  -- "ask" and the request, which the running coroutine must yield to its scheduler.
  local function attempt(scheduling, target, ...)
    local args = encode.ordinary(...)
    if not args then
      local fine
      fine, args = stop.raw_pcall(encode.wire_any, "argument", select("#", ...), { ... })
      if not fine then
        local refusal = encode.refusal(args)
        if refusal then return "refused", refusal end
        raw_error(args, 0)
      end
    end
    if scheduling then return "ask", { target = target, args = args } end
    return direct(target, args)
  end

  -- Where operations are counted, a call is prepared in a separate coroutine. Each coroutine has its own hook, so exactly the
  -- script's operations are counted. No code of the script runs there, and the work is bounded.
  local apart, counting

  local function work(...)
    return work(yield(attempt(...)))
  end

  function M.count(operations)
    if counting ~= operations then counting = operations end
    if apart then apart = nil end
  end

  local function settle_call(name, fate, value)
    if fate == "ask" then
      local answer = below({ value })[1]
      fate, value = answer[2], answer[3]
      if fate then return value end
    end
    if fate == "refused" then raw_error(name .. ": " .. value, 4) end
    raw_error(as_error(value), 0)
  end

  local function fail(problem)
    apart = nil -- it ended with the error
    stop.again(false, problem)
    raw_error(problem, 0)
  end

  -- Calls `target` of the host; returns its value or raises its error object.
  function M.call(target, name, ...)
    if not counting then
      local fate, value = attempt(in_schedule(), target, ...)
      if fate == true then return value end
      return (settle_call(name, fate, value))
    end
    apart = apart or create(work)
    local alive, fate, value = raw_resume(apart, in_schedule(), target, ...)
    if not alive then fail(fate) end
    if fate == true then return value end
    return (settle_call(name, fate, value))
  end

  local function cancel(requests)
    local ids = {}
    for request in next, requests do
      request.dropped = true
      if request.id and landed(request.id) then ids[#ids + 1] = request.id end
    end
    if #ids > 0 then
      guard()
      sort(ids)
      host.cancel("[" .. concat(ids, ",") .. "]")
    end
  end

  -- Runs `count` functions, at most `width` at once; results in order, errors raised or settled.
  local function schedule(count, job, width, settle)
    local ask = in_schedule() and below or exchange_all
    local results, coroutines, owner = {}, {}, {}
    local started, finished, outgoing = 0, 0, {}

    local function advance(index, answers)
      local co = coroutines[index]
      local ok, value
      if answers then
        ok, value = resume(co, answers)
      else
        ok, value = resume(co) -- without an argument: a tool's function counts them
      end
      if status(co) ~= "dead" then
        for _, request in next, value do
          owner[request] = index
          outgoing[#outgoing + 1] = request
        end
        return
      end
      coroutines[index] = false
      finished = finished + 1
      if settle then
        results[index] = ok and { ok = true, value = value } or { ok = false, error = value }
      elseif ok then
        results[index] = value
      else
        host.failed_in(co, value)
        cancel(owner)
        raw_error(value, 0)
      end
    end

    while finished < count do
      while started < count and started - finished < width do
        started = started + 1
        local co = create(job(started))
        scheduled[co], has_scheduled = true, true
        coroutines[started] = adopt(co)
        advance(started)
      end
      if finished < count and (next(owner) ~= nil or #outgoing > 0) then
        local sending = outgoing
        outgoing = {}
        local grouped, order = {}, {}
        for _, answer in next, ask(sending, owner) do
          local index = owner[answer[1]]
          owner[answer[1]] = nil
          if index then
            if not grouped[index] then
              grouped[index] = {}
              order[#order + 1] = index
            end
            grouped[index][#grouped[index] + 1] = answer
          end
        end
        for _, index in next, order do
          advance(index, grouped[index])
        end
      end
    end
    return nulls.array(results, count)
  end
  M.schedule = schedule

  local function functions_of(list, name)
    if type(list) ~= "table" then
      raw_error(name .. " expects a list of functions, got " .. kind(list), 3)
    end
    local count = rawlen(list)
    for index = 1, count do
      local item = list[index]
      if type(item) ~= "function" then
        raw_error(format("%s expects functions; item %d is a %s. Write: function() return tools.name{...} end",
          name, index, kind(item)), 3)
      end
    end
    return count
  end

  local function all(list)
    local count = functions_of(list, "parallel")
    return (schedule(count, function(index) return list[index] end, count, false))
  end

  local members = {}
  function members.settle(list)
    local count = functions_of(list, "parallel.settle")
    return (schedule(count, function(index) return list[index] end, count, true))
  end

  function members.map(list, f, options)
    if type(list) ~= "table" then raw_error("parallel.map expects a list, got " .. kind(list), 2) end
    if type(f) ~= "function" then raw_error("parallel.map expects a function as its second argument, got " .. kind(f), 2) end
    local width = 2 ^ 53
    if options ~= nil then
      if type(options) ~= "table" then raw_error("parallel.map expects a table of options, got " .. kind(options), 2) end
      for key in order.each(options) do
        if key ~= "concurrency" and key ~= "settle" then
          raw_error("parallel.map has the options 'concurrency' and 'settle', not '" .. tostring(key) .. "'", 2)
        end
      end
      local wanted = rawget(options, "concurrency")
      if wanted ~= nil then
        width = math.tointeger(wanted)
        if not width or width < 1 then raw_error("parallel.map: concurrency must be a whole number of at least 1", 2) end
      end
    end
    local settle = options ~= nil and rawget(options, "settle") and true or false
    local function job(index)
      return function() return f(list[index], index) end
    end
    return (schedule(nulls.length(list), job, width, settle))
  end

  M.parallel = host.seal(members, "parallel", {
    __index = members,
    __call = function(_, list) return (all(list)) end,
  })
  M.is_scheduled = function(co) return scheduled[co] end
  -- The request with that number, of a call under `parallel`; nil for a call that is the only one.
  function M.request_of(id) return in_flight[id] end
  return M
end
