-- attack: replace every global by something hostile, for the prelude to call
-- value: 2
-- prints: "still [1]\n"
-- calls: add
local real = { print = print, json = json, tools = tools, pairs = pairs }
for name in real.pairs(_G) do
  if name ~= "_G" and name ~= "kept" then _G[name] = function() error("hacked " .. name) end end
end
real.print("still " .. real.json.encode({ 1 }))
return real.tools.add(1)
