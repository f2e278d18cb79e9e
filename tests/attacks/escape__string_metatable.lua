-- attack: reach the metatable that all strings share through an index
-- value: "false false false"
local reached = {}
for i, name in ipairs{ "__index", "__metatable", "__name" } do
  local ok, value = pcall(function() return ("")[name] end)
  reached[i] = tostring(ok and value ~= nil)
end
return table.concat(reached, " ")
