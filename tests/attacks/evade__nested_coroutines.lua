-- attack: loop in the innermost of many coroutines, each catching what comes
-- features: coroutines
-- limits: {"timeout": 0.3}
-- error: limit time
local function nest(depth)
  if depth == 0 then while true do end end
  while true do coroutine.resume(coroutine.create(nest), depth - 1) end
end
nest(40)
