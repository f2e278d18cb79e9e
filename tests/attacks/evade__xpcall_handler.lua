-- attack: loop in the error handler of xpcall
-- limits: {"timeout": 0.2}
-- error: limit time
xpcall(error, function() while true do end end)
