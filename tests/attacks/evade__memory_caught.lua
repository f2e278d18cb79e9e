-- attack: catch the memory limit and go on allocating
-- limits: {"max_memory": 4000000}
-- error: limit memory
while true do
  pcall(function()
    local t = {}
    while true do t[#t + 1] = ("x"):rep(1000) .. #t end
  end)
end
