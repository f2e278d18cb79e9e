-- attack: catch the object that stops a run, to raise it later
-- limits: {"timeout": 0.3}
-- error: limit time
xpcall(function() while true do end end, function(e) caught = e end)
-- next run
-- value: null
return caught
