-- attack: leave traversals unfinished, so that what they remember fills the memory of later runs
-- limits: {"max_memory": 8000000}
-- value: true
local some = {}
for index = 1, 20000 do
  local t = { ["x" .. index] = 1, ["y" .. index] = 2, ["z" .. index] = 3 }
  for _ in pairs(t) do break end
  next(t, (next(t)))
  some[index % 100] = t
end
return true
-- next run
-- value: true
some = nil
for index = 1, 20000 do next({ a = 1, b = 2 }, "a") end
return true
