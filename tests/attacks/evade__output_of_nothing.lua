-- attack: print empty lines for ever
-- limits: {"max_output": 5}
-- error: limit output
-- prints: "\n\n\n\n\n"
while true do print() end
