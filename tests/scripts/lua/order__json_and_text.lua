-- prints: "{\"-1\":0,\"2\":1,\"10\":2,\"a\":{\"x\":1,\"y\":2,\"z\":[]},\"b\":null,\"c\":null}\n"
-- prints: "{\"a\":null,\"b\":2,\"c\":null,\"d\":1}\n"
-- value: "{\n  \"9\": 1,\n  \"10\": 2,\n  \"x\": 3\n}"
print({ c = json.null, b = json.null, a = { z = array {}, y = 2, x = 1 }, [10] = 2, [2] = 1, [-1] = 0 })
print(json.decode('{"d": 1, "c": null, "b": 2, "a": null}'))
return json.encode({ x = 3, [10] = 2, [9] = 1 }, { indent = 2 })
