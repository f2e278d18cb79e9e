-- attack: make the prelude call the script with its own values as arguments
-- features: metatables
-- value: []
-- prints: "[[1]]\t[[1]]\n"
-- calls: echo echo
local seen = array{}
local function spy(...)
  for i = 1, select("#", ...) do
    local v = select(i, ...)
    if type(v) == "userdata" and v ~= json.null or type(v) == "thread" then seen[#seen + 1] = type(v) end
  end
end
local meta = {}
for name in ("index newindex call concat eq lt le len unm add tostring name pairs close"):gmatch("%a+") do meta["__" .. name] = spy end
local t = setmetatable({ 1 }, meta)
for _, f in ipairs{ print, json.encode, tools.echo, array, tostring, ipairs, next, table.concat, table.sort, parallel, parallel.map, docs.search, string.format, select, rawlen } do
  pcall(f, t, t)
  pcall(f, { t }, { t })
end
return seen
