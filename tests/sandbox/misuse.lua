-- Calls every function that there is with every kind of value in every place, and tells what each had to say.
local values = {
  { "nil", nil }, { "null", json.null }, { "integer", 7 }, { "negative", -1 }, { "float", 1.5 }, { "huge", 1e300 }, { "true", true },
  { "text", "text" }, { "number as text", "12" }, { "bytes", "\255" }, { "percent", "%" },
  { "empty table", {} }, { "list", { {}, 2 } }, { "map", { a = 1 } }, { "empty array", array {} }, { "array of null", array { json.null } },
  { "function", function() end }, { "C function", next },
  { "coroutine", coroutine.create(print) }, { "dead coroutine", coroutine.create(function() end) },
  { "error object", select(2, pcall(tools.fail)) },
  { "object", setmetatable({}, { __name = "Thing" }) },
  { "object that refuses", setmetatable({}, { __index = function() error("mine", 0) end, __len = function() return 1 end }) },
  { "string library", string }, { "table library", table }, { "tools", tools }, { "docs", docs }, { "parallel", parallel },
}
coroutine.resume(values[20][2])

local called = {}
for name, value in pairs(_G) do
  if type(value) == "function" then called[name] = value end
  if type(value) == "table" and name ~= "_G" then
    for member, inner in pairs(value) do
      if type(inner) == "function" then called[name .. "." .. member] = inner end
    end
  end
end
for method in pairs(string) do
  called["text:" .. method] = function(...) return ("text")[method]("text", ...) end
end
called.parallel = function(...) return parallel(...) end
called["docs[...]"] = function(name) return docs[name] end
called["tools[...]"] = function(name) return tools[name] end
called["null[...]"] = function(name) return json.null[name] end

local places = {
  function(v) return 1, v end,
  function(v) return 3, v, v, v end,
  function(v) return 2, "text", v end,
  function(v) return 2, { 1, 2 }, v end,
  function(v) return 3, "text", "text", v end,
  function(v) return 4, { 1 }, 1, 1, v end,
  function(v) return 2, print, v end,
}

local said = {}
local function note(where, ok, problem)
  if not ok then said[tostring(problem)] = said[tostring(problem)] or where end
end

local ways = {
  function(f, ...) return pcall(f, ...) end,
  function(f, ...) return xpcall(f, function(problem) return problem end, ...) end,
  function(f, ...)
    local given, count = { ... }, select("#", ...)
    return pcall(function()
      local result = f(table.unpack(given, 1, count))
      return result
    end)
  end,
  function(f, ...) return coroutine.resume(coroutine.create(f), ...) end,
  function(f, ...)
    local given, count = { ... }, select("#", ...)
    local settled = parallel.settle { function() return f(table.unpack(given, 1, count)) end }
    return settled[1].ok, settled[1].error
  end,
}

local quiet = { print = true }
for name, f in pairs(called) do
  for _, entry in ipairs(values) do
    for index, place in ipairs(places) do
      local given = table.pack(place(entry[2]))
      local way = ways[(index + #name) % #ways + 1]
      for _, way in ipairs(only_way and { way } or { ways[1], ways[3], way }) do
        if not quiet[name] then note(name .. " with " .. entry[1], way(f, table.unpack(given, 2, given[1] + 1))) end
      end
    end
  end
end

local list = {}
for message, where in pairs(said) do list[#list + 1] = array { where, message } end
return array(list)
