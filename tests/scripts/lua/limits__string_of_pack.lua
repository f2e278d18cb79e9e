-- limits: {"max_string": 1000}
-- error: limit string
string.pack("c2000", "x")
