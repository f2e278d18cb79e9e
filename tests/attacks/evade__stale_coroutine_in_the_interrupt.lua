-- attack: leave a dead coroutine where the interrupt looks for running ones, by an overflow on the way in
-- features: coroutines
-- limits: {"timeout": 0.5, "max_memory": 200000000}
-- error: limit time
local t = {}
for i = 1, 250000 do t[i] = i end
for n = 150000, 249000, 33000 do
  pcall(function() coroutine.resume(coroutine.create(function() end), table.unpack(t, 1, n)) end)
  pcall(function(...) coroutine.resume(coroutine.create(function() end), ...) end, table.unpack(t, 1, n))
end
local junk = {}
while true do junk[#junk % 1000 + 1] = ("A"):rep(200) .. #junk end
