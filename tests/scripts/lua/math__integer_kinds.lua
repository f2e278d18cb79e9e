-- value: "integer"
-- value: "float"
-- value: null
-- value: 3
-- value: null
return math.type(1), math.type(1.0), math.type("1"), math.tointeger(3.0), math.tointeger(3.5)
