-- value: "{\"a\":[1,2.5,\"x\",null,true],\"b\":{}}"
json.encode({ a = { 1, 2.5, "x", null, true }, b = {} })
