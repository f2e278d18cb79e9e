-- attack: catch the time limit with pcalls that call pcall
-- limits: {"timeout": 0.2}
-- error: limit time
while true do pcall(pcall, pcall, pcall, function() while true do end end) end
