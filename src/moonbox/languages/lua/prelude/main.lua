-- The prelude: builds the environment of scripts and runs them in it. What it uses is in its own locals, which scripts cannot reach.
local host, import = ...
local raw_error, load, type, tostring, next, select, setmetatable = error, load, type, tostring, next, select, setmetatable
local rawset, rawget, rawequal, rawlen, raw_pcall, raw_xpcall = rawset, rawget, rawequal, rawlen, pcall, xpcall
local getmetatable, raw_setmetatable = debug.getmetatable, debug.setmetatable
local find, match, format, gmatch, gsub = string.find, string.match, string.format, string.gmatch, string.gsub
local concat, pack, unpack = table.concat, table.pack, table.unpack
local collect, tonumber, tointeger = collectgarbage, tonumber, math.tointeger

-- The explicit null, json.null, is a light userdata: one value, equal to itself only, that nothing can be stored in.
local anchor
local null = debug.upvalueid(function() return anchor end, 1)
debug.setmetatable(null, {
  __name = "null",
  __metatable = false,
  __tostring = function() return "null" end,
  __index = function(_, key) raw_error("attempt to index a null value (field '" .. host.tostring(key) .. "')", 2) end,
})
host.null = null
host.array = {} -- the metatable that marks arrays, so that an empty one stays an array
local ARRAY = host.array

local allowed = import("allowed")
local stop = import("stop")(host)
local order = import("order")(host)
local nulls = import("nulls")(host, order)
local library = import("library")(host, allowed, stop, order, nulls)
host.seal = library.seal
host.is_sealed = library.is_sealed
host.tostring = library.tostring
ARRAY.__index = library.no_field("list")
local encode = import("encode")(host, stop, order, nulls)
local calls = import("calls")(host, stop, encode, order, nulls)
local guest = import("guest")(host, stop, encode, calls, order, nulls)
local kept = import("kept")(host, stop, nulls)
local with_lists = import("appended")()
local guard, result = stop.guard, encode.result

local builtins, features, baseline = {}, {}, {}
local builtins_list, put_by_name = {} -- the builtins as a list, and a function that sets each under its name
local has_guest = false
local inputs = {} -- {name, value} of the next run, and of that run only
local NOTHING = {}
local lent = {}   -- name of a kept value or input that is a global in this run -> the global that it replaced
-- Twice as many slots as there are globals, so that few of them collide, whatever the seed of the hash.
local env = load("return {" .. string.rep("x=nil,", 128) .. "}", "=moonbox", "t", {})()
local elsewhere = {}
for _, name in next, allowed.elsewhere do elsewhere[name] = true end
local ENVIRONMENT = {
  __index = function(_, name)
    local value = kept.find(name)
    if value ~= nil then return value end
    if elsewhere[name] then raw_error("'" .. name .. "' is not defined", 2) end
  end,
}
setmetatable(env, ENVIRONMENT)
local report = import("report")(host, stop, encode, calls, library, order, env)
local inspect = import("inspect")(host, stop, encode, calls, order, nulls, library)
local MOST_NAMES, MOST_NAME = 10000, 200

local function text_of(value)
  local meta = getmetatable(value)
  if type(value) == "table" and (not meta or rawequal(meta, ARRAY) or nulls.is_mark(meta)) then
    local ok, text = stop.pcall(encode.json, value)
    if ok then return text end
  end
  return library.tostring(value)
end

host.checked = library.checked
local list = import("list")(host, stop, order, nulls, text_of)
local paging = import("pages")(host, order, nulls, text_of)
guest.let_page(paging)

function host.clock(name)
  return calls.call("sys." .. name, "os." .. name)
end

-- The environment ------------------------------------------------------------------------------------------------

-- Printed text to the host; past max_output the run ends.
function host.write(text)
  stop.guard()
  local fate = host.emit(text)
  kept.print(text)
  if fate == 1 then
    stop.stop("output", "the script printed more than max_output = " .. host.max_output .. " bytes")
  elseif fate == -1 then
    stop.external()
  end
end

local function print(...)
  local parts = {}
  for index = 1, select("#", ...) do
    local value = select(index, ...)
    parts[index] = type(value) == "string" and value or text_of(value)
  end
  host.write(concat(parts, "\t") .. "\n")
end

local json = {}
function json.encode(value, options)
  local indentation
  if options ~= nil then
    if type(options) ~= "table" then raw_error("json.encode: options must be a table such as {indent = 2}", 2) end
    local wanted = rawget(options, "indent")
    if wanted ~= nil then
      local width = math.tointeger(wanted)
      if not width or width < 0 or width > 16 then raw_error("json.encode: indent must be a number from 0 to 16", 2) end
      indentation = string.rep(" ", width)
    end
  end
  local ok, text = stop.pcall(encode.json, value, indentation)
  if ok then return (library.checked(text)) end
  local refusal = encode.refusal(text)
  if refusal then raw_error("json.encode: " .. refusal, 2) end
  raw_error(text, 0)
end
function json.decode(text)
  if type(text) ~= "string" then raw_error("json.decode expects a string, got " .. library.kind(text), 2) end
  stop.guard()
  local ok, value = host.decode(text)
  if ok == nil then stop.out_of_memory() end
  stop.guard()
  if ok then return value end
  raw_error("json.decode: " .. value, 2)
end
json.parse, json.stringify = json.decode, json.encode
json.null = null

local function array(items)
  if items == nil then items = {} end
  if type(items) ~= "table" then raw_error("array expects a table, got " .. library.kind(items), 2) end
  if host.is_sealed(items) then raw_error("array expects a table of your own", 2) end
  if nulls.is_array(items) then return items end
  return setmetatable(items, ARRAY)
end

local docs = {}
function docs.search(words, limit) return (calls.call("docs.search", "docs.search", words, limit)) end
function docs.describe(name) return (calls.call("docs.describe", "docs.describe", name)) end
local docs_table = library.seal(docs, "docs", {
  __pairs = function()
    local names, index = calls.call("docs.names", "docs"), 0
    return function()
      index = index + 1
      local name = names[index]
      if name ~= nil then return name, (calls.call("docs.get", "docs", name)) end
    end, nil, nil
  end,
  __index = function(_, name)
    local member = docs[name]
    if member then return member end
    return (calls.call("docs.get", "docs", name))
  end,
})

local own_tables = setmetatable({}, { __mode = "k" }) -- tables of functions and values, not values that are tables
-- The table in `root` that has the last part of a dotted name, and that part. The tables on the way are made.
local function descend(root, path)
  local at, last = root, nil
  for part in gmatch(path, "[^\31]+") do
    if last then
      if type(at[last]) ~= "table" then
        at[last] = {}
        own_tables[at[last]] = true
      end
      at = at[last]
    end
    last = part
  end
  return at, last
end

-- Nested tables of functions that the host answers; `entries` is a list of {dotted name, target}.
local tool_functions = setmetatable({}, { __mode = "k" }) -- function -> {target, name, the parameters that it is paged with}
local function host_functions(entries, root_name)
  local root = {}
  for _, entry in next, entries do
    local path, target = entry[1], entry[2]
    local at, last = descend(root, path)
    local label = root_name .. gsub(path, "\31", ".")
    -- A name that is also a namespace stays one: the function has another name for that case.
    if not own_tables[at[last] or 0] then
      at[last] = function(...) return (calls.call(target, label, ...)) end
      tool_functions[at[last]] = { target, label, entry[3] }
    end
  end
  return root
end

local function pages(tool, args, wish)
  local known = tool_functions[tool or NOTHING]
  if not known then stop.complain("pages: the first argument must be a tool, such as tools.list_orders, not a " .. library.kind(tool)) end
  if args == nil then args = {} end
  if type(args) ~= "table" or rawlen(args) > 0 then
    stop.complain("pages: the arguments of the tool must be a table with names, such as {status = \"open\"}")
  end
  local problem, items = paging.problem_with(wish)
  if not problem then
    items, problem = paging.collect(function(current) return (calls.call(known[1], known[2], current)) end, known[2], known[3], args, wish)
  end
  if problem then stop.complain("pages: " .. problem) end
  return items
end

local function seal_tree(tree, name)
  for key, value in next, tree do
    if type(value) == "table" and own_tables[value] then tree[key] = seal_tree(value, name == "" and key or name .. "." .. key) end
  end
  return library.seal(tree, name)
end

local function safe_coroutines()
  local lib = {}
  local create, status, yield, running = coroutine.create, coroutine.status, coroutine.yield, coroutine.running
  local isyieldable = coroutine.isyieldable
  local base = running() -- a coroutine on hosts where a script can leave its thread
  local function callable(f, name)
    if type(f) ~= "function" then
      raw_error("bad argument #1 to '" .. name .. "' (function expected, got " .. library.kind(f) .. ")", 3)
    end
    return f
  end
  function lib.create(f)
    return stop.adopt(create(callable(f, "create")))
  end
  local function own(co, name)
    if type(co) ~= "thread" then
      raw_error("bad argument #1 to '" .. name .. "' (coroutine expected, got " .. library.kind(co) .. ")", 3)
    end
    if calls.is_scheduled(co) and name ~= "status" then
      raw_error("bad argument #1 to '" .. name .. "' (parallel runs this coroutine)", 3)
    end
    return co
  end
  function lib.resume(co, ...) return stop.resume(own(co, "resume"), ...) end
  local function passed(co, ok, ...)
    if ok then return ... end
    host.failed_in(co, (...))
    raw_error((...), 0)
  end
  report.inner(passed)
  function lib.wrap(f)
    local co = stop.adopt(create(callable(f, "wrap")))
    return function(...) return passed(co, stop.resume(co, ...)) end
  end
  function lib.yield(...)
    local co = running()
    if rawequal(co, base) then raw_error("attempt to yield from outside a coroutine", 0) end
    if calls.is_scheduled(co) then
      raw_error("coroutine.yield cannot be used directly inside parallel: make a coroutine of your own there", 2)
    end
    return yield(...)
  end
  function lib.status(co) return status(own(co, "status")) end
  function lib.close(co)
    local now = status(own(co, "close"))
    if now ~= "suspended" and now ~= "dead" then raw_error("cannot close a " .. now .. " coroutine", 2) end
    return stop.close(co)
  end
  function lib.running()
    local co = running()
    return co, rawequal(co, base) or calls.is_scheduled(co) or false
  end
  function lib.isyieldable()
    local co = running()
    return not rawequal(co, base) and isyieldable() and not calls.is_scheduled(co)
  end
  return library.seal(lib, "coroutine")
end

local function safe_metatables(into)
  function into.getmetatable(value)
    if type(value) ~= "table" then return nil end
    local meta = getmetatable(value)
    if meta == nil or rawequal(meta, ARRAY) or rawequal(meta, ENVIRONMENT) or nulls.is_mark(meta) then return nil end
    local field = rawget(meta, "__metatable")
    if field ~= nil then return field end
    return meta
  end
  function into.setmetatable(value, meta)
    if type(value) ~= "table" then
      raw_error("bad argument #1 to 'setmetatable' (table expected, got " .. library.kind(value) .. ")", 2)
    end
    if meta ~= nil and type(meta) ~= "table" then
      raw_error("bad argument #2 to 'setmetatable' (nil or table expected, got " .. library.kind(meta) .. ")", 2)
    end
    local before = getmetatable(value)
    if before and not rawequal(before, ARRAY) and not nulls.is_mark(before) and rawget(before, "__metatable") ~= nil then
      raw_error("cannot change a protected metatable", 2)
    end
    if meta and (rawget(meta, "__gc") ~= nil or rawget(meta, "__mode") ~= nil) then
      raw_error("the metamethods __gc and __mode are not available", 2)
    end
    return nulls.setmetatable(value, meta)
  end
end

-- `list` is a usual name for data: what a script does with its own list must not pass for an empty one.
local function not_a_list()
  local function refuse()
    stop.complain("'list' is the library here, not a list of yours: globals of that name last for one run; use another name")
  end
  return {
    __len = refuse,
    __index = function(_, key)
      if type(key) == "number" then refuse() end
      return list[key]
    end,
  }
end

local function rebuild(config)
  builtins = {}
  for name, value in next, library.base do builtins[name] = value end
  for name, value in next, library.libraries do builtins[name] = value end
  builtins.pcall, builtins.xpcall = stop.pcall, stop.xpcall
  builtins.print, builtins.array = print, array
  builtins.json = library.seal(json, "json")
  builtins.list, builtins.pages = library.seal(list, "list", not_a_list()), pages
  builtins.docs = docs_table
  builtins.parallel = calls.parallel
  builtins.tools = seal_tree(host_functions(config.tools, "tools."), "tools")
  if features.coroutines then builtins.coroutine = safe_coroutines() end
  if features.metatables then safe_metatables(builtins) end
  local added = host_functions(config.functions, "")
  for _, entry in next, config.values do
    local at, last = descend(added, entry[1])
    at[last] = entry[2]
  end
  for name, value in next, added do
    builtins[name] = own_tables[value] and seal_tree(value, name) or value
  end
end

-- Calls `put(into, list)` while the table `into` has no metatable, since a script may have given it one.
local fill = host.fill or stop.trust(function(into, list, put)
  local meta = getmetatable(into)
  raw_setmetatable(into, nil)
  local ok, problem = raw_pcall(put, into, list)
  raw_setmetatable(into, meta)
  if not ok then raw_error(problem, 0) end
end)

local function put_builtins() fill(env, builtins_list, put_by_name) end

local function list_builtins()
  builtins_list = { env }
  local lines = { "local into, list = ...", "into._G = list[1]" }
  for name, value in next, builtins do
    builtins_list[#builtins_list + 1] = value
    lines[#lines + 1] = format("into[%q] = list[%d]", name, #builtins_list)
  end
  put_by_name = stop.trust(load(concat(lines, "\n"), "=moonbox", "t", {}))
end

local function lend_global(name, value)
  if lent[name] == nil then
    local before = rawget(env, name)
    if before == nil then before = NOTHING end
    lent[name] = before
  end
  rawset(env, name, value)
end

local function lend_over(name, value)
  if rawget(env, name) ~= nil then lend_global(name, value) end
end

-- Kept values and inputs are globals for one run; afterwards the globals that they replaced are restored. A kept value that
-- replaces no global is found by ENVIRONMENT.__index, unless a script has given the environment another metatable.
local function lend(number)
  kept.begin(number)
  if has_guest then
    kept.each(guest.lend, "kept_", "kept")
    for _, entry in next, inputs do guest.lend(entry[1], entry[2], true) end
  elseif kept.any() or inputs[1] then
    kept.each(rawequal(getmetatable(env), ENVIRONMENT) and lend_over or lend_global, "_", "_")
    for _, entry in next, inputs do lend_global(entry[1], entry[2]) end
  end
  if inputs[1] then inputs = {} end
end

local function give_back(...)
  stop.rest()
  if has_guest then guest.give_back() end
  if next(lent) then
    for name, before in next, lent do
      if rawequal(before, NOTHING) then before = nil end
      rawset(env, name, before)
      lent[name] = nil -- emptied, not replaced: a new table would grow again in every run
    end
  end
  return ...
end
stop.trust(give_back)

-- Entry points for the engine ----------------------------------------------------------------------------------------

local engine = {}

function engine.configure(config)
  features = config.features
  if config.runtime and not has_guest then
    library.let_strings_be()
    guest.load(config.runtime)
    has_guest = true
  end
  if has_guest then guest.configure(config) end
  rebuild(config)
  list_builtins()
  for name in next, baseline do rawset(env, name, nil) end -- names of the previous configuration
  put_builtins()
  baseline = {}
  for name in next, builtins do baseline[name] = true end
  baseline._G = true
end

function engine.limits(limits)
  if host.limits then host.limits(limits) end
  host.max_output = limits.max_output
  kept.configure(limits)
  library.configure(limits)
  encode.configure(limits)
  order.configure(limits)
  guest.limits(limits)
end

-- Lua makes no tail calls in a block with a variable to close, so that `return f()` keeps the script's frame, and with it the line
-- of an error. Only in the script's outermost block: tail calls in its functions stay tail calls.
local STAY = "local moonbox_stay <close> = nil; "
-- The same, for a script with tables that it appends to (appended.lua): they are made by a function that only the script's text names.
local NEW_LIST = "moonbox_list"
local STAY_WITH_LISTS = "local moonbox_stay <close>, moonbox_list = nil, moonbox_list; _ENV.moonbox_list = nil; "
local function new_list() return setmetatable({}, ARRAY) end

-- Words that no expression begins with.
local STATEMENTS = {}
for word in gmatch("break do for goto if local repeat return while", "%a+") do STATEMENTS[word] = true end

-- The first word of a script, nil without one, and whether it has brackets or quotes: a script without them calls nothing.
local survey = host.survey or function(source)
  return match(source, "^%s*([%w_]+)"), find(source, "[%[({\"']") ~= nil
end

-- A script may be a single expression. `listed` is its text with the tables that it appends to as lists, or nil.
local function compile(source, chunk, word, calls_something, listed)
  if has_guest then return guest.script(source) end
  local name = "=" .. chunk
  if listed then
    local script = load(STAY_WITH_LISTS .. listed, name, "t", env)
    if script then
      lend_global(NEW_LIST, new_list)
      return script
    end
  end
  local stay = calls_something and STAY or ""
  local script = not STATEMENTS[word] and load(stay .. "return " .. source, name, "t", env)
    or load(stay .. source, name, "t", env)
  if script then return script end
  return load(source, name, "t", env)
end

local function body(script)
  local results = pack(script())
  guard()
  local text, size = result(results.n, results)
  return text, size, results
end

-- Returns "ok", JSON of the values or true where the engine holds it; or "stop", limit, message, frames; or kind, message, frames, extra.
-- Last comes the number of operations, where they are counted.
local function run(source, chunk, seed, limits, number)
  number = number or tointeger(tonumber(match(chunk, "#(%d+)$") or 1))
  put_builtins()
  lend(number)
  library.seed(seed)
  local counting = not has_guest -- guests count their operations themselves
  order.begin(counting and limits.max_operations ~= nil)
  calls.begin()
  encode.begin()
  report.begin()
  local word, calls_something, listed
  if not has_guest then -- before anything is counted
    word, calls_something = survey(source)
    listed = calls_something and with_lists(source, NEW_LIST .. "()")
  end
  stop.begin(limits, counting)
  calls.count(counting and limits.max_operations ~= nil)
  local script, problem = compile(source, chunk, word, calls_something, listed)
  if not script then
    stop.finish()
    if problem == "not enough memory" then return "stop", "memory", "the script is too large for max_memory", "[]" end
    return "syntax", problem, "[]", "{}"
  end
  local ok, text, size, results = raw_xpcall(body, report.handler, script)
  local stopped, operations = stop.finish()
  local halted = stopped or rawequal(text, stop.STOP)
  if halted or ok then stop.rest() end -- otherwise a __tostring of the script may run in the report
  if has_guest then operations = guest.operations() end
  if halted then
    stopped = stopped or { external = 0 }
    local where = has_guest and guest.where() or "{}"
    return "stop", stopped.limit or stopped.external, stopped.message or "", report.frames_json(report.frames()), operations, where
  end
  if not ok then size = 0 end
  if kept.wants(size) then stop.raw_pcall(kept.keep, number, ok and (guest.latest() or results) or {}, size) end
  if ok then return "ok", text, "", "", operations end
  if text == "not enough memory" then
    results, script = nil, nil
    collect()
    return "stop", "memory", "the script needed more memory than max_memory allows", "[]", operations
  end
  local refusal = encode.refusal(text)
  if refusal then return "runtime", refusal, "[]", "{}", operations end
  local kind, message, frames, extra = guest.report(text)
  if kind == "stop" then return kind, message, frames, "[]", operations, extra end
  if not kind then kind, message, frames, extra = report.report(text, report.frames()) end
  local late = host.reason()
  if late ~= 0 then return "stop", late, "", frames, operations end
  return kind, message, frames, extra, operations
end

stop.trust(run)

-- The run's number is in the chunk's name; a host may also pass it, which saves reading it there.
function engine.run(source, chunk, seed, limits, number)
  return give_back(run(source, chunk, seed, limits, number))
end
stop.trust(engine.run)

-- Globals of the next run only: a list of {name, value}.
function engine.inputs(list) inputs = list end

-- What of the last run was kept: 1 for its value, 2 for its output, 3 for both.
function engine.kept() return kept.flags() end

-- Whether a script compiles; it is not run. Returns what `run` returns for one that does not, or "ok".
engine.outline = guest.outline

function engine.check(source, chunk)
  if not has_guest then
    local script, problem = compile(source, chunk, survey(source))
    if script then return "ok", "" end
    return "syntax", problem, "[]", "{}"
  end
  local ok, problem = stop.raw_pcall(guest.check, source)
  if ok then return "ok", "" end
  local kind, message, frames, extra = guest.report(problem)
  if kind then return kind, message, frames, extra end
  return "runtime", host.tostring(problem), "[]", "{}"
end

-- Names and values of the globals that scripts have defined, in order; their number and length are bounded.
local function each_global()
  local step, walk, name, value = order.each(env)
  local count = 0
  return function()
    repeat
      name, value = step(walk, name)
      if name == nil then return nil end
    until type(name) == "string" and not baseline[name] and #name <= MOST_NAME
    count = count + 1
    if count <= MOST_NAMES then return name, value end
  end
end

-- The same names with their types, as JSON.
function engine.globals()
  if has_guest then return guest.globals() end
  local parts = {}
  for name, value in each_global() do
    parts[#parts + 1] = "[" .. encode.quote(name) .. "," .. encode.quote(value == null and "null" or type(value)) .. "]"
  end
  return "[" .. concat(parts, ",") .. "]"
end

-- What the script has that waits for the call with that number, as JSON; see inspect.lua. `number` is that of its run.
function engine.inspect(id, number)
  local chunk = number == 1 and "script" or format("script#%d", number)
  if has_guest then return inspect(id, chunk, guest, guest.each_global()) end
  return inspect(id, chunk, nil, each_global())
end

-- Builders that turn what the host sends into tables.
function engine.mark(list) return setmetatable(list, ARRAY) end

engine.null = null
engine.nulls = nulls
engine.hook = stop.hook
function engine.collect() collect() collect() end
function engine.main_thread() return format("%p", (coroutine.running())) end
function engine.install_hook() debug.sethook(stop.hook, "", 10000) end
if host.bind then -- for the native part of a worker
  host.bind({
    run = engine.run,
    inputs = engine.inputs,
    kept = engine.kept,
    inspect = engine.inspect,
    array = ARRAY,
    null = null,
    null_fields = nulls.fields,
    null_array = nulls.array,
    fields = nulls.FIELDS,
    positions = nulls.POSITIONS,
    count = nulls.COUNT,
  })
end

return engine
