-- attack: catch the memory limit in coroutines
-- features: coroutines
-- limits: {"max_memory": 4000000}
-- error: limit memory
while true do
  coroutine.resume(coroutine.create(function()
    local t = {}
    while true do t[#t + 1] = ("x"):rep(1000) .. #t end
  end))
end
