-- attack: have json.decode read a number of a million digits
-- value: "float"
return math.type(json.decode(("9"):rep(1000000)))
