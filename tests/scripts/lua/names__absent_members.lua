-- value: []
local found = array{}
for path in ([[
  string.dump os.execute os.exit os.getenv os.remove os.rename os.tmpname os.setlocale
  table.new table.clear string.buffer math.pow
]]):gmatch("%S+") do
  local space, name = path:match("(%w+)%.(%w+)")
  if _G[space][name] ~= nil then found[#found + 1] = path end
end
return found
