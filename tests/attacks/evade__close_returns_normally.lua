-- attack: leave a block in __close as if nothing had happened
-- features: metatables
-- limits: {"max_operations": 5000}
-- error: limit operations
for _ = 1, 1000 do
  pcall(function()
    local a <close> = setmetatable({}, { __close = function() return true end })
    while true do end
  end)
end
