-- attack: make a string that fills the memory with string.rep
-- error: limit string
return #("x"):rep(1e10)
