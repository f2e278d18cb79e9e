-- value: "{\"a\":1,\"b\":2,\"c\":3}"
json.encode({ c = 3, a = 1, b = 2 })
