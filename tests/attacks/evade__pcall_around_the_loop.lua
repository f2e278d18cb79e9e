-- attack: catch the time limit with pcall and go on
-- limits: {"timeout": 0.2}
-- error: limit time
while true do pcall(function() while true do end end) end
