-- attack: read addresses out of texts, to learn where memory lies
-- features: metatables coroutines
-- value: []
-- calls: fail
local texts, leaks = {}, array{}
local function try(f, ...)
  local r = table.pack(pcall(f, ...))
  for i = 1, r.n do if type(r[i]) == "string" then texts[#texts + 1] = r[i] end end
end
local _, e = pcall(tools.fail)
for _, thing in ipairs{ {}, print, function() end, coroutine.create(print), tools, coroutine.running() } do
  try(tostring, thing)
  try(string.format, "%s", thing)
  try(string.format, "%10s", thing)
  try(string.format, "%q", thing)
  for _, form in ipairs{ "%p", "%5p", "%-p", "%.3p", "%-20p" } do
    try(string.format, form, thing)
    try(string.format, form, "text")
  end
  try(function() string[thing] = 1 end)
  try(function() return json.null[thing] end)
  try(function() return e .. thing end)
  try(function() return thing .. e end)
  try(function() e.tool = thing return tostring(e) end)
  try(function() e.message = thing return tostring(e) end)
  try(function() return thing + 1 end)
  try(function() return thing < thing end)
  try(function() return #thing .. "" end)
  try(function() parallel.map({}, print, { [thing] = 1 }) end)
  try(json.encode, { thing })
  try(json.encode, { [thing] = 1 })
  try(table.concat, { thing })
  try(error, thing)
  try(docs.search, thing)
end
for _, text in ipairs(texts) do
  if text:find("0x[^0]") or text:find("0x0?0?[^0]") then leaks[#leaks + 1] = text end
end
return leaks
