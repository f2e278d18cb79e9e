-- The report of a failed run: the script's frames at that moment, and the error as kind, message and data.
return function(host, stop, encode, calls, library, order, env)
  local type, next, rawget, rawequal = type, next, rawget, rawequal
  local getinfo, getmetatable = debug.getinfo, debug.getmetatable
  local find, sub, format, concat = string.find, string.sub, string.format, table.concat
  local MOST_NODES, MOST_FRAMES = 50000, 40

  local M = {}
  local inner = {} -- functions that our other functions tail-call
  function M.inner(f) inner[f] = true end

  -- Frames of the script's own functions, innermost first; ours are left out.
  --
  -- Our functions do not tail-call each other, except for those in `inner`. So one that was tail-called was called by the script,
  -- and the caller's frame is gone: a first frame without a line says so.
  local function frames_from(level, co)
    local frames = {}
    while #frames < 24 do
      local info = co and getinfo(co, level, "Slntf") or not co and getinfo(level, "Slntf")
      if not info then break end
      if info.istailcall and #frames == 0 and sub(info.source, 1, 9) == "=moonbox/" and not inner[info.func] then
        frames[1] = { "gone", -1, "" }
      end
      if sub(info.source, 1, 7) == "=script" then
        local name = info.what == "main" and "main chunk"
          or info.name and format("%s '%s'", info.namewhat ~= "" and info.namewhat or "function", info.name)
          or format("function at line %d", info.linedefined)
        frames[#frames + 1] = { sub(info.source, 2), info.currentline, name }
      end
      level = level + 1
    end
    return frames
  end

  local fallen -- the error that ended a coroutine, and where
  function host.failed_in(co, problem)
    local frames = frames_from(0, co)
    if fallen and rawequal(fallen.problem, problem) and #fallen.frames < MOST_FRAMES then
      for _, frame in next, frames do fallen.frames[#fallen.frames + 1] = frame end
    else
      fallen = { problem = problem, frames = frames }
    end
  end

  local failure -- the error that ended the run, and where

  function M.begin()
    if failure or fallen then failure, fallen = nil, nil end
  end

  -- Where the run failed; empty if that is not known.
  function M.frames() return failure and failure.frames or {} end

  M.handler = stop.trust(function(problem)
    local frames = frames_from(3)
    if fallen and rawequal(fallen.problem, problem) then
      for _, frame in next, frames do fallen.frames[#fallen.frames + 1] = frame end
      frames = fallen.frames
    end
    failure = { problem = problem, frames = frames }
    return problem
  end)
  stop.trust(frames_from)

  function M.frames_json(frames)
    local parts = {}
    for index, frame in next, frames do
      parts[index] = "[" .. encode.quote(frame[1]) .. "," .. (frame[2] or -1) .. "," .. encode.quote(frame[3]) .. "]"
    end
    return "[" .. concat(parts, ",") .. "]"
  end

  local function names_json()
    local names, count = {}, 0
    for name in order.each(env) do
      if type(name) == "string" and #name < 60 and not find(name, "[\128-\255]") and count < 300 then
        count = count + 1
        names[count] = encode.quote(name)
      end
    end
    return "[" .. concat(names, ",") .. "]"
  end

  -- The text from encoding or from a __tostring of the script; nil if that failed. A limit that is reached here ends nothing.
  local attempt = stop.trust(function(f, ...)
    local ok, text = stop.raw_pcall(f, ...)
    if ok and type(text) == "string" then return text end
    stop.finish()
    return nil
  end)

  local function said_by(problem, kind, whole)
    local message = kind == "table" and rawget(problem, "message")
    if type(message) == "string" then return message end
    local meta = getmetatable(problem)
    local text = whole and not (meta and rawget(meta, "__tostring")) and attempt(encode.json, problem)
    text = text or attempt(library.tostring, problem) or "(its __tostring failed)"
    return kind == "table" and text or "error object is a " .. library.kind(problem) .. " value: " .. text
  end

  -- The report of a failure: kind, message, frames (JSON), extra (JSON).
  function M.report(problem, frames)
    local where = M.frames_json(frames)
    local kind = type(problem)
    if kind == "string" then
      return "runtime", problem, where, '{"names":' .. (find(problem, "nil value", 1, true) and names_json() or "[]") .. "}"
    end
    local extra, whole = "{}", false
    if kind == "table" then
      local data = attempt(encode.wire, "error", 1, { problem }, MOST_NODES)
      extra = '{"data":' .. (data or "[null]") .. "}"
      whole = data ~= nil
      if rawequal(getmetatable(problem), calls.error_meta) then
        local message = rawget(problem, "message")
        return "tool", attempt(library.tostring, message) or "", where, extra
      end
    end
    return "runtime", said_by(problem, kind, whole), where, extra
  end

  return M
end
