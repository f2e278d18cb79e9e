-- attack: allocate in an error handler
-- limits: {"max_memory": 4000000}
-- error: limit memory
while true do
  xpcall(error, function()
    local t = {}
    while true do t[#t + 1] = ("x"):rep(1000) .. #t end
  end)
end
