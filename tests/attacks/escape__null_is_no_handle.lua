-- attack: use the explicit null, which is a userdata, as a handle on something
-- features: metatables
-- value: null
-- value: 0
local done = 0
for _, f in ipairs{
  function() json.null.x = 1 end,
  function() return json.null.x end,
  function() return #json.null end,
  function() return json.null() end,
  function() return json.null + 1 end,
  function() return json.null < json.null end,
  function() return json.null .. "" end,
  function() rawset(json.null, 1, 1) end,
  function() setmetatable(json.null, {}) end,
  function() for _ in pairs(json.null) do end end,
  function() for _ in ipairs(json.null) do end end,
  function() return string.rep(json.null, 2) end,
} do
  if pcall(f) then done = done + 1 end
end
return getmetatable(json.null), done
