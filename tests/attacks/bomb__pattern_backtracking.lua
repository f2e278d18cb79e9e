-- attack: keep C busy with a pattern that backtracks for ages
-- isolation: process
-- limits: {"timeout": 0.3}
-- error: limit time
-- state: lost
return (("a"):rep(40)):find(("a-"):rep(12) .. "b")
