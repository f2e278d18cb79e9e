-- attack: use null, which is a userdata, as a handle on something
-- features: metatables
-- value: null
-- value: 0
local done = 0
for _, f in ipairs{
  function() null.x = 1 end,
  function() return null.x end,
  function() return #null end,
  function() return null() end,
  function() return null + 1 end,
  function() return null < null end,
  function() return null .. "" end,
  function() rawset(null, 1, 1) end,
  function() setmetatable(null, {}) end,
  function() for _ in pairs(null) do end end,
  function() for _ in ipairs(null) do end end,
  function() return string.rep(null, 2) end,
} do
  if pcall(f) then done = done + 1 end
end
return getmetatable(null), done
