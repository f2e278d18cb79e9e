-- attack: loop in the function that pages asks whether to go on
-- limits: {"timeout": 0.3}
-- error: limit time
-- calls: rows
while true do pcall(pages, tools.rows, { count = 1 }, function() while true do pcall(function() while true do end end) end end) end
