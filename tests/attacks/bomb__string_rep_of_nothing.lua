-- attack: keep C busy with repeating an empty string
-- value: ""
return (""):rep(math.maxinteger)
