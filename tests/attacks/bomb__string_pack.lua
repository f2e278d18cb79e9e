-- attack: have string.pack pad a string to a gigabyte
-- error: limit memory
return #string.pack("c1000000000", "x")
