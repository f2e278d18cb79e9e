-- attack: loop in the __close that coroutine.close runs
-- features: metatables coroutines
-- limits: {"timeout": 0.2}
-- error: limit time
local co = coroutine.create(function()
  local a <close> = setmetatable({}, { __close = function() while true do end end })
  coroutine.yield()
end)
coroutine.resume(co)
while true do pcall(coroutine.close, co) end
