-- What a script has that waits for a call: its frames with their locals, and its globals, as JSON for a person to read.
--
-- It changes nothing and runs no code of the script. What is no data is text in angle brackets; what is cut says so.
return function(host, stop, encode, calls, order, nulls, library)
  local type, next, rawget, rawlen, rawequal, tostring = type, next, rawget, rawlen, rawequal, tostring
  local getinfo, getlocal, getupvalue, sethook = debug.getinfo, debug.getlocal, debug.getupvalue, debug.sethook
  local getmetatable, create, resume, running = debug.getmetatable, coroutine.create, coroutine.resume, coroutine.running
  local byte, sub, format, concat, mtype = string.byte, string.sub, string.format, table.concat, math.type
  local MOST_FRAMES, MOST_NAMES, MOST_ITEMS, DEEPEST, LONGEST, MOST_TEXT = 40, 200, 100, 6, 2000, 200000
  local HIDDEN = { moonbox_stay = true, moonbox_list = true }
  local main = running()
  local quote = encode.quote
  local left, open -- bytes of text; how a value of the language is read

  local function text_of(text)
    if #text <= LONGEST then return quote(text) end
    local last = LONGEST
    while last > 0 and byte(text, last + 1) & 0xC0 == 0x80 do last = last - 1 end
    return quote(sub(text, 1, last) .. format("… %d more bytes", #text - last))
  end

  local function is_list(value, count)
    if rawequal(getmetatable(value), host.array) or nulls.is_array(value) then return true end
    if count == 0 then return false end
    local seen = 0
    for key in next, value do
      seen = seen + 1
      if mtype(key) ~= "integer" or key < 1 or key > count then return false end
      if seen == MOST_ITEMS then return true end
    end
    return true
  end

  -- A Lua value: how it is written, and with what.
  local function open_lua(value)
    local kind = type(value)
    if rawequal(value, host.null) then return "null" end
    if kind ~= "table" then return kind == "thread" and "coroutine" or kind, value end
    if library.is_sealed(value) then return host.kind(value) end
    if is_list(value, rawlen(value)) then return "list", nulls.length(value) end
    local _, absent = nulls.of(value)
    return "map", absent
  end

  local write

  local function write_list(list, count, depth)
    local parts = {}
    for index = 1, count do
      if index > MOST_ITEMS or left <= 0 then
        parts[index] = quote(format("… %d more", count - index + 1))
        break
      end
      parts[index] = write(rawget(list, index), depth)
    end
    return "[" .. concat(parts, ",") .. "]"
  end

  local function write_map(map, absent, depth)
    local parts, more = {}, 0
    local function add(key, text)
      parts[#parts + 1] = text_of(type(key) == "string" and key or tostring(key)) .. ":" .. text
    end
    for key, value in order.each(map) do
      local kind = type(key)
      if #parts >= MOST_ITEMS or left <= 0 then
        more = more + 1
      elseif kind == "string" or kind == "number" then
        add(key, write(value, depth))
      elseif key ~= true or open == open_lua then -- under true is how many fields a map of Rhai has
        add("<" .. kind .. ">", write(value, depth))
      end
    end
    for key in next, absent or {} do
      if #parts < MOST_ITEMS and rawget(map, key) == nil then add(key, "null") end
    end
    if more > 0 then add("…", quote(format("%d more", more))) end
    return "{" .. concat(parts, ",") .. "}"
  end

  local function number(value)
    if mtype(value) == "integer" then return tostring(value) end
    if value - value ~= 0 then return quote(value ~= value and "<nan>" or value > 0 and "<inf>" or "<-inf>") end
    return format("%.17g", value)
  end

  function write(value, depth)
    local kind, content = open(value)
    local text
    if left <= 0 then
      text = '"…"'
    elseif kind == "nil" or kind == "null" then
      text = "null"
    elseif kind == "boolean" then
      text = content and "true" or "false"
    elseif kind == "number" then
      text = number(content)
    elseif kind == "string" then
      text = text_of(content)
    elseif (kind == "list" or kind == "map") and depth < DEEPEST then
      return (kind == "list" and write_list or write_map)(value, content, depth + 1)
    else
      text = quote("<" .. kind .. ">")
    end
    left = left - #text
    return text
  end

  -- Names and values, without those that have none; a later one hides an earlier one of its name.
  local function write_names(names, values)
    local parts = {}
    for index = 1, #names do
      if #parts < MOST_NAMES and values[names[index]] ~= nil then
        parts[#parts + 1] = quote(names[index]) .. ":" .. write(values[names[index]][1], 1)
      end
    end
    return "{" .. concat(parts, ",") .. "}"
  end

  -- Calls found(name, value) for each local of a frame, and for what its function has captured.
  local function each_variable(co, level, f, found)
    for index = 1, 255 do
      local name, value = getlocal(co, level, index)
      if not name then break end
      if byte(name) ~= 40 then found(name, value) end -- "(": Lua's own
    end
    for index = 1, 255 do
      local name, value = getupvalue(f, index)
      if not name then break end
      found(name, value, true)
    end
  end

  local function collect(co, level, f)
    local names, values = {}, {}
    each_variable(co, level, f, function(name, value, is_captured)
      if HIDDEN[name] or is_captured and (name == "_ENV" or values[name] ~= nil) then return end
      if values[name] == nil then names[#names + 1] = name end
      values[name] = { value }
    end)
    return names, values
  end

  local function lua_frame(co, level, info, chunk)
    local name = info.what == "main" and "main chunk" or info.name or format("function at line %d", info.linedefined)
    local own = sub(info.source, 2) == chunk
    return name, info.currentline, own, collect(co, level, info.func)
  end

  local guest_frame -- function(collect, co, level, info): the same of a guest language; nil for a frame that is none of its

  local function frame_of(co, level, info, chunk)
    local name, line, own, names, values
    if guest_frame then
      name, line, own, names, values = guest_frame(collect, co, level, info)
    elseif sub(info.source, 1, 7) == "=script" then
      name, line, own, names, values = lua_frame(co, level, info, chunk)
    end
    if not name then return nil end
    return '{"function":' .. text_of(name) .. ',"line":' .. (line or -1) .. ',"own":' .. tostring(own)
      .. ',"locals":' .. write_names(names, values) .. "}"
  end

  -- The coroutine, under a `parallel` of this level, that waits for this request.
  local function waiting(co, level, request)
    local owner, coroutines
    for index = 1, 255 do
      local name, value = getlocal(co, level, index)
      if not name then break end
      if name == "owner" then owner = value elseif name == "coroutines" then coroutines = value end
    end
    return owner and coroutines and owner[request] and coroutines[owner[request]] or nil
  end

  -- Frames of a coroutine, innermost first. Those of the coroutine in which the request was made come before them.
  local function add_frames(frames, co, request, chunk)
    local level = 0
    while #frames < MOST_FRAMES do
      local info = getinfo(co, level, "Slnf")
      if not info then return end
      local inner = request and info.func == calls.schedule and waiting(co, level, request)
      if inner then add_frames(frames, inner, request, chunk) end
      frames[#frames + 1] = frame_of(co, level, info, chunk)
      level = level + 1
    end
  end

  local function look(id, chunk, guest, globals)
    left, open, guest_frame = MOST_TEXT, guest and guest.open or open_lua, guest and guest.frame
    local frames, request = {}, calls.request_of(id)
    local active, level = stop.running()
    for at = level, 1, -1 do add_frames(frames, active[at], request, chunk) end
    add_frames(frames, main, request, chunk)
    local names, values = {}, {}
    for name, value in globals do
      names[#names + 1], values[name] = name, { value }
    end
    return '{"frames":[' .. concat(frames, ",") .. '],"globals":' .. write_names(names, values) .. "}"
  end

  -- In a coroutine of its own, without a hook: nothing is counted, and an error ends nothing else. Nil where it failed.
  return function(...)
    local co = create(look)
    sethook(co)
    local ok, text = resume(co, ...)
    left, open, guest_frame = nil, nil, nil
    return ok and text or nil
  end
end
