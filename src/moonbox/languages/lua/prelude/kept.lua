-- What an answer may have cut is kept: large values and outputs of earlier runs, as globals that the answer names.
--
-- Kept are those of the last runs, oldest first to go, up to a share of the memory that a run may take. They are part of that
-- memory: where it gets scarce they all go.
return function(host, stop, nulls)
  local next, rawset, concat = next, rawset, table.concat
  local collect, type, tostring, tonumber, match = collectgarbage, type, tostring, tonumber, string.match
  local LEAST, MOST_RUNS, SHARE = 500, 20, 16 -- bytes of text that no answer is too short for; age; of max_memory

  local M = {}
  local entries = {} -- number -> {value =, output =, size =}
  local latest = 0   -- flags of the last run: 1 for its value, 2 for its output
  local newest       -- number of the newest entry with a value
  local most, scarce = 0, math.huge
  local printed, printed_size = {}, 0

  function M.configure(limits)
    local memory = limits.max_memory or 0 -- a host that does not say keeps nothing
    most, scarce = memory // SHARE, limits.memory_soft - memory // 2
  end

  local function forget_all() entries, newest = {}, nil end

  function M.any() return next(entries) ~= nil end

  function M.begin(number)
    if latest ~= 0 then latest = 0 end
    if printed[1] then printed, printed_size = {}, 0 end
    if next(entries) == nil then return end
    for earlier in next, entries do
      if earlier < number - MOST_RUNS then entries[earlier] = nil end
    end
    if newest and not entries[newest] then newest = nil end
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
    while true do
      local total, oldest = size, nil
      for number, entry in next, entries do
        total = total + entry.size
        if not oldest or number < oldest then oldest = number end
      end
      if total <= most or not oldest then return total <= most end
      entries[oldest] = nil
      if newest == oldest then newest = nil end
    end
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
    entries[number] = entry
    latest = (results and 1 or 0) | (output and 2 or 0)
  end

  function M.flags() return latest end

  -- The value of a name as Lua scripts write them; nil where nothing is kept under it.
  function M.find(name)
    if next(entries) == nil or type(name) ~= "string" then return nil end
    if name == "_" then return newest and entries[newest].value end
    local digits, rest = match(name, "^_(%d+)(.*)$")
    local number = digits and tonumber(digits)
    local entry = number and entries[number]
    if not entry or digits ~= tostring(number) then return nil end
    if rest == "" then return entry.value end
    if rest == "_printed" then return entry.output end
    return nil
  end

  -- Calls `set` with the name and value of each entry; `prefix` begins the names, `last` is the name of the newest value.
  function M.each(set, prefix, last)
    for number, entry in next, entries do
      if entry.value ~= nil then set(prefix .. number, entry.value) end
      if entry.output ~= nil then set(prefix .. number .. "_printed", entry.output) end
    end
    if newest then set(last, entries[newest].value) end
  end

  return M
end
