-- value: "{\n  \"a\": [\n    1,\n    2\n  ]\n}"
json.encode({ a = { 1, 2 } }, { indent = 2 })
