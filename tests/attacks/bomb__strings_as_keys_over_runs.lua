-- attack: leave the memory full for the next run
-- limits: {"max_memory": 3000000}
-- error: limit memory
hoard = {}
while true do hoard[#hoard + 1] = "some text " .. #hoard end
-- next run
-- value: 1
return 1
-- next run
-- error: limit memory
while true do hoard[#hoard + 1] = "some text " .. #hoard end
