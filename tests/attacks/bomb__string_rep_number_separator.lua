-- attack: make a huge string out of a number as separator
-- error: limit string
return #string.rep("", 1e9, 12345)
