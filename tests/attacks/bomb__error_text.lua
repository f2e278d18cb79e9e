-- attack: raise an error with a text of many megabytes
-- error: runtime
error(("x"):rep(9000000), 0)
