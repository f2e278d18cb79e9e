-- attack: keep C busy with patterns, catching what comes
-- isolation: process
-- limits: {"timeout": 0.3}
-- error: limit time
-- state: lost
while true do pcall(string.gsub, ("a"):rep(50000), ".-.-.-b", "") end
