-- value: {"a": [1, 2.5, null, true], "b": {}, "c": []}
json.decode('{"a": [1, 2.5, null, true], "b": {}, "c": []}')
