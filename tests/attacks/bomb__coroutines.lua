-- attack: make coroutines that stay without end
-- features: coroutines
-- limits: {"max_memory": 8000000}
-- error: limit memory
local keep = {}
while true do
  local co = coroutine.create(function() coroutine.yield() end)
  coroutine.resume(co)
  keep[#keep + 1] = co
end
