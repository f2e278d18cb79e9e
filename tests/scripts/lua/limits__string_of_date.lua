-- limits: {"max_string": 1000}
-- error: limit string
os.date(("%Y"):rep(300), 0)
