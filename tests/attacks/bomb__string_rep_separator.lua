-- attack: make a huge string out of a separator
-- error: limit string
return #(""):rep(1e9, "xyz")
