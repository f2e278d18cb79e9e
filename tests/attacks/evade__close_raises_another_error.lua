-- attack: replace the limit's error by another one in __close
-- features: metatables
-- limits: {"timeout": 0.2}
-- error: limit time
pcall(function()
  local a <close> = setmetatable({}, { __close = function() error("mine") end })
  while true do end
end)
