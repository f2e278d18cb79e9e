-- attack: put a metatable on the environment that the prelude trips over
-- features: metatables
-- value: "done"
setmetatable(_G, {
  __index = function(_, k) return function() return "hacked " .. tostring(k) end end,
  __newindex = function() error("no more globals") end,
  __pairs = function() error("no pairs") end,
  __len = function() error("no length") end,
  __eq = function() return true end,
  __metatable = "mine",
})
return "done"
