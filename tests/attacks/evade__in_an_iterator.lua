-- attack: loop in an iterator
-- limits: {"timeout": 0.2}
-- error: limit time
while true do pcall(function() for _ in function() while true do end end do end end) end
