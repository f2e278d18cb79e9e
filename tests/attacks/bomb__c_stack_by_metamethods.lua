-- attack: overflow the C stack with metamethods
-- features: metatables
-- value: [false, false, false, false]
local t
t = setmetatable({}, {
  __index = function(_, k) return t[k] + 1 end,
  __concat = function(a, b) return t .. b end,
  __lt = function(a, b) return t < t end,
  __tostring = function() return string.format("%s", t) end,
})
return { (pcall(function() return t.x end)), (pcall(function() return t .. 1 end)), (pcall(function() return t < t end)), (pcall(tostring, t)) }
