-- attack: find the prelude's modules and entry points
-- value: 0
local n = 0
for name in ("host engine stop library encode calls import allowed builtins env features baseline moonbox vm wire exchange"):gmatch("%a+") do
  if _G[name] ~= nil then n = n + 1 end
end
return n
