-- attack: loop in a comparator that table.sort calls from C
-- limits: {"timeout": 0.2}
-- error: limit time
while true do pcall(table.sort, { 1, 2, 3 }, function() while true do end end) end
