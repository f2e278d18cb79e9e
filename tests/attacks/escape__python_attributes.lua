-- attack: reach Python through attributes of functions and tables
-- value: 0
local reached = 0
for _, thing in ipairs{ print, tools, tools.add, json.decode, docs, string, pcall, json.null } do
  for _, name in ipairs{ "__class__", "__globals__", "__dict__", "__subclasses__", "__init__", "__code__", "gi_frame" } do
    local ok, value = pcall(function() return thing[name] end)
    if ok and value ~= nil and value ~= json.null then reached = reached + 1 end
  end
end
return reached
