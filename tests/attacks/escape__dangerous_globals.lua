-- attack: use what a Lua interpreter usually offers to reach the system
-- value: ""
local found = ""
for name in ("io os.execute os.getenv os.remove os.rename os.tmpname os.exit os.setlocale package require dofile loadfile load loadstring debug collectgarbage string.dump python newproxy"):gmatch("%S+") do
  local value = _G
  for part in name:gmatch("%w+") do value = value and value[part] end
  if value ~= nil then found = found .. name .. " " end
end
return found
