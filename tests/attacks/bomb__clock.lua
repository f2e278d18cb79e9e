-- attack: fill the host's record by reading the clock without end
-- limits: {"timeout": 0.5}
-- error: limit time
while true do os.clock() end
