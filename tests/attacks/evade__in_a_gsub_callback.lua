-- attack: loop in a function that string.gsub calls from C
-- limits: {"timeout": 0.2}
-- error: limit time
while true do pcall(string.gsub, "abc", ".", function() while true do end end) end
