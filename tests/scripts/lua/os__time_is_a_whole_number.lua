-- value: "integer"
-- value: true
return math.type(os.time()), os.time() > 1700000000
