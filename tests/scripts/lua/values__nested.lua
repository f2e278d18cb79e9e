-- value: {"a": {"b": {"c": [[], [[1]], {"d": null}]}}}
return { a = { b = { c = { array{}, { { 1 } }, { d = json.null } } } } }
