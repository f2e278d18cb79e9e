-- limits: {"max_string": 1000}
-- error: limit string
("x"):rep(500):gsub("x", "yyy")
