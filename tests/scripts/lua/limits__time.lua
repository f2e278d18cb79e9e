-- limits: {"timeout": 0.2}
-- error: limit time
kept = 1
while true do end
-- next run
-- value: 1
kept
