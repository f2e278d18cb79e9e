-- attack: loop in the __close of the main coroutine when a limit ends an inner one
-- features: metatables coroutines
-- limits: {"max_memory": 4000000}
-- error: limit memory
local a <close> = setmetatable({}, { __close = function() while true do end end })
coroutine.wrap(function()
  local t = {}
  while true do t[#t + 1] = ("x"):rep(10000) .. #t end
end)()
