-- attack: have json.decode unfold a text into millions of tables
-- error: limit memory
return #json.decode("[" .. ("[],"):rep(3000000) .. "[]]")
