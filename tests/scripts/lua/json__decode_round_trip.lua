-- value: {"a": [[], {}, null, "\u0000é", 1, 1.5]}
json.decode(json.encode({ a = { array{}, {}, null, "\0é", 1, 1.5 } }))
