-- Kept values: large values and outputs of earlier runs, which an answer may have cut, as globals that the answer names.
--
-- Those of the last runs are kept, up to a share of the memory that a run may take; the oldest are dropped first. They count as
-- part of that memory: when it runs short, all of them are dropped.
return function(host, stop, nulls)
  local concat = table.concat
  local collect, type, tostring, tonumber, match = collectgarbage, type, tostring, tonumber, string.match
  local LEAST, MOST_RUNS, SHARE = 500, 20, 16 -- bytes of text that every answer has room for; runs; share of max_memory

  local M = {}
  local entries, count, total = {}, 0, 0 -- number -> {value =, output =, size =}; how many, and their sizes together
  local first, last = 0, 0 -- all numbers are from the first to the last
  local latest = 0   -- flags of the last run: 1 for its value, 2 for its output
  local newest       -- number of the newest entry with a value
  local most, scarce = 0, math.huge
  local printed, printed_size = {}, 0

  function M.configure(limits)
    local memory = limits.max_memory or 0 -- a host that does not say keeps nothing
    most, scarce = memory // SHARE, limits.memory_soft - memory // 2
  end

  local function forget_all() entries, count, total, newest = {}, 0, 0, nil end

  local function forget_first()
    local entry = entries[first]
    if entry then
      entries[first] = nil
      count, total = count - 1, total - entry.size
      if newest == first then newest = nil end
    end
    first = first + 1
  end

  function M.any() return count > 0 end

  function M.begin(number)
    if latest ~= 0 then latest = 0 end
    if printed[1] then printed, printed_size = {}, 0 end
    while count > 0 and first < number - MOST_RUNS do forget_first() end
    if count == 0 then return end
    if collect("count") * 1024 > scarce then
      collect()
      if collect("count") * 1024 > scarce then forget_all() end
    end
  end

  function M.print(text)
    printed[#printed + 1] = text
    printed_size = printed_size + #text
  end

  local function make_room(size)
    if size > most then return false end
    while total + size > most do forget_first() end
    return true
  end

  -- Whether a run has something to keep whose value has a text of `size` bytes.
  function M.wants(size) return size >= LEAST or printed_size >= LEAST end

  -- Keeps what the run `number` returned, if its text of `size` bytes is long, and what it printed.
  function M.keep(number, results, size)
    local output = printed_size >= LEAST and concat(printed) or nil
    if printed[1] then printed, printed_size = {}, 0 end
    if size < LEAST or results.n == 0 then results, size = nil, 0 end
    if not (output or results) or not make_room(size + (output and #output or 0)) then return end
    local entry = { output = output, size = size + (output and #output or 0) }
    if results then
      if results.n == 1 then entry.value = results[1] else entry.value = nulls.array(results, results.n) end
      results.n = nil
      newest = number
    end
    if number <= last then forget_all() end -- numbers of runs only grow: the host was restarted
    if count == 0 then first = number end
    entries[number], last = entry, number
    count, total = count + 1, total + entry.size
    latest = (results and 1 or 0) | (output and 2 or 0)
  end

  function M.flags() return latest end

  -- The value of a name as Lua scripts write them; nil where nothing is kept under it.
  function M.find(name)
    if count == 0 or type(name) ~= "string" then return nil end
    if name == "_" then return newest and entries[newest].value end
    local digits, rest = match(name, "^_(%d+)(.*)$")
    local number = digits and tonumber(digits)
    local entry = number and entries[number]
    if not entry or digits ~= tostring(number) then return nil end
    if rest == "" then return entry.value end
    if rest == "_printed" then return entry.output end
    return nil
  end

  -- Calls `set` with the name and value of each entry; `prefix`, always the same, begins the names.
  function M.each(set, prefix, latest_name)
    if count == 0 then return end
    for number = first, last do
      local entry = entries[number]
      if entry then
        local name = entry.name
        if not name then
          name = prefix .. number
          entry.name = name
        end
        if entry.value ~= nil then set(name, entry.value) end
        if entry.output ~= nil then set(name .. "_printed", entry.output) end
      end
    end
    if newest then set(latest_name, entries[newest].value) end
  end

  return M
end
